package render

import (
	stdjson "encoding/json"
	"io/fs"
	"path"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/fleetling/fleetling/sources"
)

// assertAsKustomize compares what we make of a folder with what `kustomize
// build` makes of it, with its own file system and nothing of ours in between;
// and the short way of a plain kustomization with the long one.
func assertAsKustomize(t *testing.T, fsys fs.FS, req Request, limits sources.Limits, got Result) {
	t.Helper()
	if len(req.Components) == 0 && len(req.Substitute) == 0 && hasKustomization(fsys, req.Path) && !hasLinks(t, fsys) {
		assert.Empty(t, cmp.Diff(byIdentity(kustomizeAlone(t, onDisk(t, fsys), req.Path)), byIdentity(contents(got))), "-kustomize +ours")
	}
	long, err := longWay(fsys, req, limits)
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(long.Objects, got.Objects), "-long way +short way")
	assert.Equal(t, long.Digest, got.Digest)
	assert.Len(t, got.Warnings, len(long.Warnings))
}

// longWay renders a request without the short way.
func longWay(fsys fs.FS, req Request, limits sources.Limits) (Result, error) {
	p := &problems{addOn: req.AddOn}
	s := newScan(newTree(fsys, limits), p)
	base, components := s.base(req), s.components(req)
	if err := p.err(); err != nil {
		return Result{}, err
	}
	items, err := s.build(base, components)
	if err != nil {
		return Result{}, err
	}
	result, _, err := finished(items, req, limits, p, base.place)
	return result, err
}

// onDisk copies a repository into a file system of kustomize's own.
func onDisk(t *testing.T, fsys fs.FS) filesys.FileSystem {
	t.Helper()
	disk := filesys.MakeFsInMemory()
	require.NoError(t, fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		return disk.WriteFile("/"+name, data)
	}))
	return disk
}

func kustomizeAlone(t *testing.T, disk filesys.FileSystem, dir string) []map[string]any {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	options.PluginConfig = types.DisabledPluginConfig()
	built, err := krusty.MakeKustomizer(options).Run(disk, path.Join("/", dir))
	require.NoError(t, err)
	var objects []map[string]any
	for _, resource := range built.Resources() {
		object := written(t, resource)
		meta := object["metadata"].(map[string]any)
		for _, name := range serverOwned() {
			delete(meta, name)
		}
		objects = append(objects, object)
	}
	return objects
}

// written gives an object as kustomize writes it. Its writer breaks folded text
// with indented lines in it, so such an object is taken before it is written.
func written(t *testing.T, r *resource.Resource) map[string]any {
	t.Helper()
	text, err := r.MarshalJSON()
	if folded(r.YNode()) {
		var content map[string]any
		content, err = r.Map()
		require.NoError(t, err)
		text, err = stdjson.Marshal(content)
	}
	require.NoError(t, err)
	object := map[string]any{}
	require.NoError(t, json.Unmarshal(text, &object))
	return object
}

func folded(n *yaml.Node) bool {
	return n.Style&yaml.FoldedStyle != 0 || slices.ContainsFunc(n.Content, folded)
}

func hasKustomization(fsys fs.FS, dir string) bool {
	s := newScan(newTree(fsys, sources.DefaultLimits()), &problems{})
	found, err := s.find(path.Clean(dir))
	return err == nil && found != ""
}

func hasLinks(t *testing.T, fsys fs.FS) (found bool) {
	t.Helper()
	require.NoError(t, fs.WalkDir(fsys, ".", func(_ string, entry fs.DirEntry, err error) error {
		found = found || err == nil && entry.Type() == fs.ModeSymlink
		return err
	}))
	return found
}

func contents(r Result) []map[string]any {
	var objects []map[string]any
	for _, object := range r.Objects {
		objects = append(objects, object.Object)
	}
	return objects
}

func byIdentity(objects []map[string]any) map[identity]map[string]any {
	out := map[identity]map[string]any{}
	for _, object := range objects {
		meta := object["metadata"].(map[string]any)
		namespace, _ := meta["namespace"].(string)
		out[identityOf(object["apiVersion"].(string), object["kind"].(string), namespace, meta["name"].(string))] = object
	}
	return out
}

func TestSchemasThatReferInACircleAreFound(t *testing.T) {
	cases := map[string]struct {
		refs map[string][]string
		want bool
	}{
		"nothing":            {nil, false},
		"a chain":            {map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"gone"}}, false},
		"two ways to one":    {map[string][]string{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": nil}, false},
		"itself":             {map[string][]string{"a": {"a"}}, true},
		"a circle of three":  {map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"a"}}, true},
		"a circle after all": {map[string][]string{"x": {"a"}, "a": {"y", "b"}, "b": {"a"}}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, circular(c.refs)) })
	}
}
