package git

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	// maxCached bounds the tree objects kept parsed, in bytes of the objects.
	maxCached = 4 << 20
	// lfsPointer is the first line of what Git LFS commits in place of a file.
	lfsPointer = "version https://git-lfs.github.com/spec/v1"
)

// tree is the fs.FS of one tree object. Nothing of it is ever on disk as files.
type tree struct {
	repository *Repository
	root       plumbing.Hash
	alive      func() error // the end of the context that Tree was called with

	mu     sync.Mutex
	budget budget
	known  map[plumbing.Hash][]entry
	cached int
}

var (
	_ fs.ReadDirFS  = (*tree)(nil)
	_ fs.ReadFileFS = (*tree)(nil)
	_ fs.StatFS     = (*tree)(nil)
	_ fs.ReadLinkFS = (*tree)(nil)
)

func newTree(r *Repository, root plumbing.Hash, alive func() error) *tree {
	return &tree{repository: r, root: root, alive: alive, budget: newBudget(r.limits), known: map[plumbing.Hash][]entry{}}
}

// Open reads a file as a whole: what it gives can't fail later.
func (t *tree) Open(name string) (fs.File, error) {
	n, err := t.find("open", name, false)
	if err != nil {
		return nil, err
	}
	if n.kind == kindFolder {
		entries, err := t.list("open", name, n)
		if err != nil {
			return nil, err
		}
		return &openFolder{info: info{name: path.Base(name), kind: kindFolder}, entries: entries}, nil
	}
	content, err := t.read("open", name, n)
	if err != nil {
		return nil, err
	}
	return &openFile{info: info{name: path.Base(name), kind: n.kind, size: int64(len(content))}, Reader: bytes.NewReader(content)}, nil
}

// ReadFile gives the bytes as git has them: no line ending is changed.
func (t *tree) ReadFile(name string) ([]byte, error) {
	n, err := t.find("read", name, false)
	if err != nil {
		return nil, err
	}
	if n.kind == kindFolder {
		return nil, &fs.PathError{Op: "read", Path: name, Err: contentError("is a folder")}
	}
	return t.read("read", name, n)
}

// ReadDir gives the entries sorted by name.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.find("readdir", name, false)
	if err != nil {
		return nil, err
	}
	if n.kind != kindFolder {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: contentError("is not a folder")}
	}
	return t.list("readdir", name, n)
}

// Stat follows links.
func (t *tree) Stat(name string) (fs.FileInfo, error) { return t.stat("stat", name, false) }

// Lstat does not follow a link at the end of name.
func (t *tree) Lstat(name string) (fs.FileInfo, error) { return t.stat("lstat", name, true) }

// ReadLink gives a link's text, wherever it leads.
func (t *tree) ReadLink(name string) (string, error) {
	n, err := t.find("readlink", name, true)
	if err != nil {
		return "", err
	}
	target := ""
	if err = fs.ErrInvalid; n.kind == kindLink {
		target, err = t.target(n.entry)
	}
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return target, nil
}

func (t *tree) stat(op, name string, stay bool) (fs.FileInfo, error) {
	n, err := t.find(op, name, stay)
	if err != nil {
		return nil, err
	}
	i, err := t.info(path.Base(name), n.entry)
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return i, nil
}

func (t *tree) find(op, name string, stay bool) (node, error) {
	if !fs.ValidPath(name) {
		return node{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	n, err := t.resolve(name, stay)
	if err != nil {
		return node{}, &fs.PathError{Op: op, Path: name, Err: limitReached(err)}
	}
	return n, nil
}

func (t *tree) read(op, name string, n node) ([]byte, error) {
	content, err := t.repository.object(plumbing.BlobObject, n.id)
	if err == nil && bytes.HasPrefix(content, []byte(lfsPointer)) {
		err = contentError("is a Git LFS pointer: LFS is not supported, commit the file itself")
	}
	if err == nil {
		t.mu.Lock()
		err = t.budget.read(n.path, int64(len(content)))
		t.mu.Unlock()
	}
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: limitReached(err)}
	}
	return content, nil
}

func (t *tree) list(op, name string, n node) ([]fs.DirEntry, error) {
	entries, err := t.folder(n.id)
	if err == nil {
		t.mu.Lock()
		err = t.budget.list(n.path, len(entries))
		t.mu.Unlock()
	}
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: limitReached(err)}
	}
	list := make([]fs.DirEntry, 0, len(entries))
	for _, e := range entries {
		if err := checkName(e.name); err != nil {
			return nil, &fs.PathError{Op: op, Path: name, Err: contentError(fmt.Sprintf("%q: %v", e.name, err))}
		}
		list = append(list, dirEntry{tree: t, entry: e})
	}
	return list, nil
}

// folder gives the entries of a tree object, sorted by name.
func (t *tree) folder(id plumbing.Hash) ([]entry, error) {
	if err := t.alive(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if entries, ok := t.known[id]; ok {
		return entries, nil
	}
	raw, err := t.repository.object(plumbing.TreeObject, id)
	if err != nil {
		return nil, err
	}
	entries, err := parseTree(raw)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, byName) // git sorts a folder as if its name ended in a slash
	for i := 1; i < len(entries); i++ {
		if entries[i-1].name == entries[i].name {
			return nil, contentError(fmt.Sprintf("the name %q is there twice", entries[i].name))
		}
	}
	if t.cached += len(raw); t.cached > maxCached {
		clear(t.known)
		t.cached = len(raw)
	}
	t.known[id] = entries
	return entries, nil
}

func byName(a, b entry) int { return cmp.Compare(a.name, b.name) }

func (t *tree) lookup(id plumbing.Hash, name string) (entry, bool, error) {
	entries, err := t.folder(id)
	if err != nil {
		return entry{}, false, err
	}
	i, found := slices.BinarySearchFunc(entries, name, func(e entry, name string) int { return strings.Compare(e.name, name) })
	if !found {
		return entry{}, false, nil
	}
	return entries[i], true, nil
}

func (t *tree) info(name string, e entry) (info, error) {
	i := info{name: name, kind: e.kind}
	if e.kind == kindFolder {
		return i, nil
	}
	err := e.check()
	if err != nil {
		return i, err
	}
	i.size, err = t.repository.size(e.id)
	return i, err
}
