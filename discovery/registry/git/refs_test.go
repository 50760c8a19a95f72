package git_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fleetling/fleetling/discovery/registry/git"
)

// repository is a repository of such commits, on server and disk at once: how
// they get from one to the other is not this package's business.
type repository struct {
	mu       sync.Mutex
	commits  map[string]fstest.MapFS
	authors  map[string]string
	branches map[string]string
	pushes   int
	reads    int
	kept     []string
	fail     error            // of Fetch
	unread   map[string]error // problems of Fetch
	broken   error            // of Files
}

var _ git.Refs = (*repository)(nil)

func newRepository() *repository {
	return &repository{commits: map[string]fstest.MapFS{}, authors: map[string]string{}, branches: map[string]string{}}
}

func (r *repository) Fetch(ctx context.Context, keep []string) (map[string]string, map[string]error, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = keep
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if r.fail != nil {
		return nil, nil, r.fail
	}
	return maps.Clone(r.branches), r.unread, nil
}

func (r *repository) Push(ctx context.Context, branch string, files map[string][]byte, name string, at time.Time) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	author := fmt.Sprintf("%s %d", name, at.Unix())
	commit, tree := r.write(files, author)
	if old := r.branches[branch]; old != "" && same(r.commits[old], tree) {
		return old, nil
	}
	r.pushes++
	r.branches[branch] = commit
	return commit, nil
}

// write makes a commit, which r.mu guards.
func (r *repository) write(files map[string][]byte, author string) (string, fstest.MapFS) {
	id, tree := sha1.New(), fstest.MapFS{}
	fmt.Fprintln(id, author)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(id, "%q %q\n", path, files[path])
		tree[path] = &fstest.MapFile{Data: bytes.Clone(files[path])}
	}
	commit := fmt.Sprintf("%x", id.Sum(nil))
	r.commits[commit], r.authors[commit] = tree, author
	return commit, tree
}

func same(a, b fstest.MapFS) bool {
	return maps.EqualFunc(a, b, func(x, y *fstest.MapFile) bool { return bytes.Equal(x.Data, y.Data) })
}

func (r *repository) Files(ctx context.Context, commit string, read func(fs.FS) error) error {
	r.mu.Lock()
	r.reads++
	files, broken := r.commits[commit], r.broken
	r.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case broken != nil:
		return broken
	case files == nil:
		return fs.ErrNotExist
	}
	return read(files)
}

// commit puts files into a branch past every check.
func (r *repository) commit(branch string, files map[string][]byte) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	commit, _ := r.write(files, "somebody")
	r.branches[branch] = commit
	return commit
}

func (r *repository) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *repository) count() (pushes, reads int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pushes, r.reads
}

func (r *repository) keeps() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.kept)
}

// at gives the files and the author of what a branch is at.
func (r *repository) at(t *testing.T, branch string) (paths []string, author string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	commit := r.branches[branch]
	return slices.SortedFunc(maps.Keys(r.commits[commit]), strings.Compare), r.authors[commit]
}
