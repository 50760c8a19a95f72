package render

import (
	"fmt"
	"io/fs"
	"maps"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
)

func manifest(name string) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: web}\n", name)}
}

func content(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// TestResultsAreReusedWhileAllThatWasReadIsTheSame renders a tree, changes it,
// and looks whether the result of the first render still counts.
func TestResultsAreReusedWhileAllThatWasReadIsTheSame(t *testing.T) {
	overlay := fstest.MapFS{
		"web/kustomization.yaml":   content("resources: [../base, link]\nconfigMapGenerator: [{name: c, files: [f.txt]}]\n"),
		"web/f.txt":                content("one"),
		"web/link":                 {Data: []byte("../linked"), Mode: fs.ModeSymlink},
		"linked/kustomization.yml": content("resources: [l.yaml]\n"),
		"linked/l.yaml":            manifest("l"),
		"other/kustomization.yml":  content("resources: [l.yaml]\n"),
		"other/l.yaml":             manifest("l"),
		"base/kustomization.yaml":  content("resources: [a.yaml]\n"),
		"base/a.yaml":              manifest("a"),
	}
	folder := fstest.MapFS{"web/a.yaml": manifest("a"), "web/sub/b.yaml": manifest("b"), "web/notes.txt": content("x")}
	cases := map[string]struct {
		tree   fstest.MapFS
		change func(fstest.MapFS)
		reused bool
	}{
		"nothing changed":                       {overlay, func(fstest.MapFS) {}, true},
		"a file that nothing names":             {overlay, func(f fstest.MapFS) { f["web/b.yaml"] = manifest("b") }, true},
		"another folder":                        {overlay, func(f fstest.MapFS) { f["x/a.yaml"] = manifest("b") }, true},
		"a manifest":                            {overlay, func(f fstest.MapFS) { f["base/a.yaml"] = manifest("b") }, false},
		"a generated file":                      {overlay, func(f fstest.MapFS) { f["web/f.txt"] = content("two") }, false},
		"a kustomization":                       {overlay, func(f fstest.MapFS) { f["base/kustomization.yaml"] = content("namePrefix: x-\nresources: [a.yaml]\n") }, false},
		"a second kustomization":                {overlay, func(f fstest.MapFS) { f["base/kustomization.yml"] = content("resources: []\n") }, false},
		"a link that leads elsewhere":           {overlay, func(f fstest.MapFS) { f["web/link"] = &fstest.MapFile{Data: []byte("../other"), Mode: fs.ModeSymlink} }, false},
		"a manifest that is gone":               {overlay, func(f fstest.MapFS) { delete(f, "base/a.yaml") }, false},
		"a folder: nothing changed":             {folder, func(fstest.MapFS) {}, true},
		"a folder: a text that is no manifest":  {folder, func(f fstest.MapFS) { f["web/notes.txt"] = content("y") }, true},
		"a folder: one more file":               {folder, func(f fstest.MapFS) { f["web/sub/c.yaml"] = manifest("c") }, false},
		"a folder: one file less":               {folder, func(f fstest.MapFS) { delete(f, "web/sub/b.yaml") }, false},
		"a folder: a kustomization":             {folder, func(f fstest.MapFS) { f["web/kustomization.yaml"] = content("resources: [a.yaml]\n") }, false},
		"a folder: a file in place of a folder": {folder, func(f fstest.MapFS) { delete(f, "web/sub/b.yaml"); f["web/sub"] = content("") }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, req := New(sources.DefaultLimits()), Request{AddOn: "web", Path: "web"}
			_, err := r.Render(c.tree, req)
			require.NoError(t, err)
			changed := maps.Clone(c.tree)
			c.change(changed)
			key, err := req.key()
			require.NoError(t, err)
			assert.Equal(t, c.reused, r.cache.find(key, changed) != nil)
			again, err := r.Render(changed, req)
			fresh, freshErr := New(sources.DefaultLimits()).Render(changed, req)
			assert.Equal(t, freshErr == nil, err == nil)
			assert.Equal(t, fresh.Digest, again.Digest)
		})
	}
}

func TestResultsOfOtherRequestsAreNotReused(t *testing.T) {
	fsys := fstest.MapFS{
		"web/a.yaml":           content("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: '${A}'}\n"),
		"c/kustomization.yaml": content("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: x-\n"),
		"web2/a.yaml":          manifest("b"),
	}
	r := New(sources.DefaultLimits())
	digests := map[string]bool{}
	for _, req := range []Request{
		{AddOn: "web", Path: "web"},
		{AddOn: "web", Path: "web", Substitute: map[string]string{"A": "1"}},
		{AddOn: "web", Path: "web", Substitute: map[string]string{"A": "2"}},
		{AddOn: "web", Path: "web", Components: []string{"c"}},
		{AddOn: "web", Path: "web2"},
	} {
		result, err := r.Render(fsys, req)
		require.NoError(t, err)
		digests[result.Digest] = true
	}
	assert.Len(t, digests, 5)
}

func TestAResultIsTheSameFromTheCache(t *testing.T) {
	fsys := fstest.MapFS{"web/a.yaml": content(`apiVersion: example.com/v1
kind: Odd
metadata: {name: a, uid: x}
spec: {i: 1, big: 9223372036854775807, bigger: 18446744073709551615, f: 1.5, e: 1e9, n: null, t: true, html: "<a>&</a>", l: [], m: {}, s: "1"}
`)}
	r, req := New(sources.DefaultLimits()), Request{AddOn: "web", Path: "web"}
	first, err := r.Render(fsys, req)
	require.NoError(t, err)
	second, err := r.Render(fsys, req)
	require.NoError(t, err)
	assert.Equal(t, first, second)
}

func TestAResultIsTheCallersOwn(t *testing.T) {
	fsys := fstest.MapFS{"web/a.yaml": content("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, uid: x}\ndata: {k: v}\n")}
	r, req := New(sources.DefaultLimits()), Request{AddOn: "web", Path: "web"}
	first, err := r.Render(fsys, req)
	require.NoError(t, err)
	first.Objects[0].SetLabels(map[string]string{"fleetling.dev/addon": "web"})
	first.Objects[0].Object["data"].(map[string]any)["k"] = "changed"
	first.Warnings[0].File = "changed"
	second, err := r.Render(fsys, req)
	require.NoError(t, err)
	assert.Empty(t, second.Objects[0].GetLabels())
	assert.Equal(t, map[string]any{"k": "v"}, second.Objects[0].Object["data"])
	assert.Equal(t, "web/a.yaml", second.Warnings[0].File)
}

func TestTheCacheIsBounded(t *testing.T) {
	fsys := fstest.MapFS{}
	for i := range maxCached + 10 {
		fsys[fmt.Sprintf("web/%d/a.yaml", i)] = manifest("a")
	}
	r := New(sources.DefaultLimits())
	for i := range maxCached + 10 {
		_, err := r.Render(fsys, Request{AddOn: "web", Path: fmt.Sprintf("web/%d", i)})
		require.NoError(t, err)
	}
	assert.Equal(t, maxCached, r.cache.order.Len())
	assert.Len(t, r.cache.entries, maxCached)

	limits := sources.DefaultLimits()
	limits.TreeBytes = 300
	r = New(limits)
	for i := range 10 {
		_, err := r.Render(fsys, Request{AddOn: "web", Path: fmt.Sprintf("web/%d", i)})
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, r.cache.bytes, int64(300))
	assert.Positive(t, r.cache.order.Len())
	assert.Len(t, r.cache.entries, r.cache.order.Len())
}
