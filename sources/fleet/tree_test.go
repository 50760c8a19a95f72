package fleet

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
)

// faulty is a tree in which one path can't be read.
type faulty struct {
	fstest.MapFS
	path string
	err  error
}

func (f faulty) broken(op, name string) error {
	if name == f.path {
		return &fs.PathError{Op: op, Path: name, Err: f.err}
	}
	return nil
}

func (f faulty) Open(name string) (fs.File, error) {
	if err := f.broken("open", name); err != nil {
		return nil, err
	}
	return f.MapFS.Open(name)
}

func (f faulty) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.broken("readdir", name); err != nil {
		return nil, err
	}
	return f.MapFS.ReadDir(name)
}

func (f faulty) Stat(name string) (fs.FileInfo, error) {
	if err := f.broken("stat", name); err != nil {
		return nil, err
	}
	return f.MapFS.Stat(name)
}

var errDisk = errors.New("input/output error")

func smallTree() fstest.MapFS {
	return treeOf(map[string]string{
		fleetFile: head + "clusters: {files: ['clusters/*.yaml']}\naddons:\n" +
			"- {name: base, path: addons/base, components: [{path: 'parts/{{cluster.name}}', optional: true}]}\n",
		"clusters/a.yaml": "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: a}\n",
		"clusters/b.yaml": "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: b}\n",
		"parts/a/x.yaml":  "",
	})
}

func TestWhatCannotBeReadIsNeverTakenForAbsent(t *testing.T) {
	limit := &sources.Error{Reason: sources.LimitExceeded, Err: errors.New("the file is too big")}
	for name, c := range map[string]struct {
		path   string
		err    error
		reason sources.Reason
	}{
		"fleetling.yaml": {fleetFile, errDisk, sources.InvalidFleetFile},
		"fleetling.yaml, with the tree's own reason": {fleetFile, limit, sources.LimitExceeded},
		"the folder of entries":                      {"clusters", errDisk, sources.InvalidFleetFile},
		"the root":                                   {".", errDisk, sources.InvalidFleetFile},
		"an entry, also of another cluster":          {"clusters/b.yaml", errDisk, sources.InvalidFleetFile},
		"an entry that is listed in its folder only": {"clusters/b.yaml", fs.ErrNotExist, sources.InvalidFleetFile},
		"a path":                     {"addons/base", errDisk, sources.PathNotFound},
		"an optional component (P3)": {"parts/a", errDisk, sources.PathNotFound},
		"an optional component, with the tree's reason": {"parts/a", limit, sources.LimitExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			tree := faulty{MapFS: smallTree(), path: c.path, err: c.err}
			_, err := readAndSelect(tree, Identity{Name: "a", ClusterSet: "prod"}, true)
			require.Error(t, err)
			assert.Equal(t, c.reason, sources.ReasonOf(err), "%v", err)
			assert.ErrorIs(t, err, c.err)
		})
	}
	_, err := readAndSelect(faulty{MapFS: smallTree()}, Identity{Name: "a", ClusterSet: "prod"}, true)
	require.NoError(t, err, "without a fault all is well")
}

func readAndSelect(fsys fs.FS, id Identity, listed bool) (Selection, error) {
	f, err := Read(fsys)
	if err != nil {
		return Selection{}, err
	}
	return f.Select(fsys, id, listed)
}

func TestLinksCountAsWhatTheyLeadTo(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, smallTree()))
	require.NoError(t, os.Rename(filepath.Join(root, "clusters"), filepath.Join(root, "elsewhere")))
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(root, "clusters")))
	require.NoError(t, os.Symlink("a", filepath.Join(root, "parts", "b")))
	got, err := readAndSelect(os.DirFS(root), Identity{Name: "b", ClusterSet: "prod"}, false)
	require.NoError(t, err)
	assert.True(t, got.Listed)
	assert.Equal(t, []string{"parts/b"}, got.AddOns[0].Components)

	require.NoError(t, os.Symlink("nowhere.yaml", filepath.Join(root, "elsewhere", "c.yaml")))
	_, err = readAndSelect(os.DirFS(root), Identity{Name: "b", ClusterSet: "prod"}, false)
	assert.ErrorIs(t, err, fs.ErrNotExist, "an entry whose link leads nowhere is not no entry")
}

func TestFleetFileMustBeAFile(t *testing.T) {
	_, err := Read(fstest.MapFS{fleetFile + "/x": {}})
	assert.Equal(t, sources.InvalidFleetFile, sources.ReasonOf(err), "%v", err)
	assert.EqualError(t, err, "fleetling.yaml: not a regular file")
}

func TestNoIdentitySelectsNothing(t *testing.T) {
	f, err := Read(smallTree())
	require.NoError(t, err)
	got, err := f.Select(smallTree(), Identity{}, false)
	assert.Equal(t, sources.IdentityMissing, sources.ReasonOf(err), "%v", err)
	assert.Equal(t, Selection{}, got)
	_, err = Fleet{}.Select(smallTree(), Identity{Name: "a", ClusterSet: "prod"}, false)
	assert.Equal(t, sources.IdentityDiffers, sources.ReasonOf(err), "%v", err)
}

func TestClusterGivesAnEntryByName(t *testing.T) {
	f, err := Read(smallTree())
	require.NoError(t, err)
	b, ok := f.Cluster("b")
	assert.True(t, ok)
	assert.Equal(t, "clusters/b.yaml", b.File)
	_, ok = f.Cluster("c")
	assert.False(t, ok)
}
