package render

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
)

// faulty fails one operation on one path.
type faulty struct {
	fstest.MapFS
	name string
	err  error
}

func (f faulty) Open(name string) (fs.File, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: f.err}
	}
	return f.MapFS.Open(name)
}

func (f faulty) Stat(name string) (fs.FileInfo, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: f.err}
	}
	return f.MapFS.Stat(name)
}

func (f faulty) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: f.err}
	}
	return f.MapFS.ReadDir(name)
}

func (f faulty) ReadFile(name string) ([]byte, error) { return nil, errors.New("not used") }

// TestARepositoryThatCannotBeReadIsNeverEmpty is the fault of B10: at every file
// and folder, in turn, reading fails.
func TestARepositoryThatCannotBeReadIsNeverEmpty(t *testing.T) {
	trees := map[string]fstest.MapFS{
		"folder": {"web/a.yaml": manifest("a"), "web/sub/b.yaml": manifest("b")},
		"plain":  {"web/kustomization.yaml": content("resources: [a.yaml, sub]\n"), "web/a.yaml": manifest("a"), "web/sub/kustomization.yaml": content("resources: [b.yaml]\n"), "web/sub/b.yaml": manifest("b")},
		"built":  {"web/kustomization.yaml": content("resources: [a.yaml, sub]\nnamePrefix: x-\n"), "web/a.yaml": manifest("a"), "web/sub/kustomization.yaml": content("resources: [b.yaml]\n"), "web/sub/b.yaml": manifest("b")},
	}
	for name, tree := range trees {
		for _, at := range slices.Concat([]string{"web", "web/sub"}, slices.Sorted(maps.Keys(tree))) {
			t.Run(name+" "+at, func(t *testing.T) {
				broken := errors.New("input/output error")
				_, err := New(sources.DefaultLimits()).Render(faulty{tree, at, broken}, Request{AddOn: "web", Path: "web"})
				require.ErrorIs(t, err, broken)
				assert.Equal(t, sources.RenderFailed, sources.ReasonOf(err))
			})
		}
	}
}

// TestWhatTheTreeSaysIsKept gives the reason of the file system below, which
// knows a limit or a link that was refused.
func TestWhatTheTreeSaysIsKept(t *testing.T) {
	tree := fstest.MapFS{"web/a.yaml": manifest("a")}
	below := &sources.Error{Reason: sources.LimitExceeded, File: "web/a.yaml", Err: errors.New("the blob is larger than 8 MiB")}
	_, err := New(sources.DefaultLimits()).Render(faulty{tree, "web/a.yaml", below}, Request{AddOn: "web", Path: "web"})
	require.EqualError(t, err, "web/a.yaml: add-on web: the blob is larger than 8 MiB")
	assert.Equal(t, sources.LimitExceeded, sources.ReasonOf(err))
}

func TestAPathIsNamedOnce(t *testing.T) {
	tree := fstest.MapFS{"web/kustomization.yaml": content("resources: [vendor]\n"), "web/vendor/x": content("")}
	_, err := New(sources.DefaultLimits()).Render(faulty{tree, "web/vendor", errors.New("is a submodule")}, Request{AddOn: "web", Path: "web"})
	require.EqualError(t, err, "web/vendor: add-on web: is a submodule")
}

// TestTheAnnouncedSizeIsNotTrusted reads a file that is longer than it says.
func TestTheAnnouncedSizeIsNotTrusted(t *testing.T) {
	limits := sources.DefaultLimits()
	limits.ObjectBytes = 10
	_, err := New(limits).Render(liar{fstest.MapFS{"web/a.yaml": manifest("a")}}, Request{AddOn: "web", Path: "web"})
	require.Error(t, err)
	assert.Equal(t, sources.LimitExceeded, sources.ReasonOf(err))
}

type liar struct{ fstest.MapFS }

func (l liar) Stat(name string) (fs.FileInfo, error) {
	info, err := l.MapFS.Stat(name)
	if err != nil || info.IsDir() {
		return info, err
	}
	return short{info}, nil
}

type short struct{ fs.FileInfo }

func (short) Size() int64 { return 1 }

// TestAFileSystemWithoutLinksWorks reads one that has neither Lstat nor ReadLink.
func TestAFileSystemWithoutLinksWorks(t *testing.T) {
	type bare struct{ fs.FS }
	result, err := New(sources.DefaultLimits()).Render(bare{fstest.MapFS{"web/a.yaml": manifest("a")}}, Request{AddOn: "web", Path: "web/"})
	require.NoError(t, err)
	assert.Len(t, result.Objects, 1)
}

// TestARendererLocksItself renders from several goroutines; the race detector
// sees what goes wrong.
func TestARendererLocksItself(t *testing.T) {
	r := New(sources.DefaultLimits())
	fsys := deployments(3, "namePrefix: x-\n")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			_, err := r.Render(fsys, Request{AddOn: "web", Path: "web"})
			assert.NoError(t, err)
		})
	}
	group.Wait()
}
