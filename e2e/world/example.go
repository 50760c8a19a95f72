package world

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/sources/gittest"
)

// Example is the example fleet repository, manifests/example.
func Example(t gittest.T) fs.FS {
	t.Helper()
	root, err := build.Root()
	must(t, err)
	return os.DirFS(filepath.Join(root, "manifests", "example"))
}

// Load copies a tree into the working copy. A file that is there already is an
// error.
func (f *Fleet) Load(t gittest.T, tree fs.FS) {
	t.Helper()
	must(t, os.CopyFS(f.Dir, tree))
}

// Replace changes a file of the working copy, where old stands exactly once.
func (f *Fleet) Replace(t gittest.T, path, old, next string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(f.Dir, filepath.FromSlash(path)))
	must(t, err)
	if n := strings.Count(string(content), old); n != 1 {
		t.Fatalf("%s: %q stands there %d times, not once", path, old, n)
	}
	f.Write(path, strings.Replace(string(content), old, next, 1))
}
