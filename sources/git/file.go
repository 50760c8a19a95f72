package git

import (
	"bytes"
	"io"
	"io/fs"
	"time"

	"github.com/fleetling/fleetling/sources"
)

// info describes a file or a folder. There are no times in a tree.
type info struct {
	name string
	kind kind
	size int64
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.kind.mode() }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.kind == kindFolder }
func (i info) Sys() any           { return nil }

// dirEntry is an entry as a listing shows it: a link is a link.
type dirEntry struct {
	tree  *tree
	entry entry
}

func (d dirEntry) Name() string               { return d.entry.name }
func (d dirEntry) IsDir() bool                { return d.entry.kind == kindFolder }
func (d dirEntry) Type() fs.FileMode          { return d.entry.kind.mode().Type() }
func (d dirEntry) Info() (fs.FileInfo, error) { return d.tree.info(d.entry.name, d.entry) }
func (d dirEntry) String() string             { return fs.FormatDirEntry(d) }

// openFile is a file read as a whole.
type openFile struct {
	info info
	*bytes.Reader
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

// openFolder is a listing that is given out in pieces.
type openFolder struct {
	info    info
	entries []fs.DirEntry
}

func (f *openFolder) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFolder) Close() error               { return nil }

func (f *openFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: fs.ErrInvalid}
}

// ReadDir is that of fs.ReadDirFile.
func (f *openFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(f.entries) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(f.entries) {
		n = len(f.entries)
	}
	list := f.entries[:n:n]
	f.entries = f.entries[n:]
	return list, nil
}

// budget counts what a tree has given out. Giving out the same again is free: a
// base that ten overlays share is one base.
type budget struct {
	limits  sources.Limits
	seen    map[string]bool
	files   int
	entries int
	bytes   int64
}

func newBudget(limits sources.Limits) budget {
	return budget{limits: limits, seen: map[string]bool{}}
}

// read counts a file. Once a limit is reached, nothing more is given out.
func (b *budget) read(path string, size int64) error {
	if !b.seen[path] {
		b.seen[path] = true
		b.files++
		b.bytes += size
	}
	return b.check()
}

// list counts a folder and its entries: a tree of few objects can hold more
// paths than any walk could end with.
func (b *budget) list(path string, entries int) error {
	if !b.seen[path] {
		b.seen[path] = true
		b.entries += entries + 1
	}
	return b.check()
}

func (b *budget) check() error {
	switch {
	case b.files > b.limits.Files:
		return tooMuch("more than limits.files, %d, are read", b.limits.Files)
	case b.bytes > b.limits.TreeBytes:
		return tooMuch("the files read hold more than limits.treeBytes, %d", b.limits.TreeBytes)
	case b.entries > b.limits.Files:
		return tooMuch("the folders listed hold more than limits.files, %d", b.limits.Files)
	}
	return nil
}
