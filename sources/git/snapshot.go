package git

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetling/fleetling/sources"
)

// snapshot is a commit without parents, with all that it needs.
type snapshot struct {
	commit, tree plumbing.Hash
	objects      map[plumbing.Hash]object
}

// newSnapshot is pure: the same input gives the same commit.
func newSnapshot(files map[string][]byte, name string, at time.Time, limits sources.Limits) (*snapshot, error) {
	root := folder{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if size := int64(len(files[path])); size > limits.ObjectBytes {
			return nil, &sources.Error{Reason: sources.LimitExceeded, Err: fmt.Errorf("%s: has %d bytes, limits.objectBytes allows %d", path, size, limits.ObjectBytes)}
		}
		if err := root.put(path, files[path]); err != nil {
			return nil, &sources.Error{Reason: sources.PathNotFound, Err: fmt.Errorf("%q: %w", path, err)}
		}
	}
	s := &snapshot{objects: map[plumbing.Hash]object{}}
	s.tree = s.addFolder(root)
	person := fmt.Sprintf("%s <noreply@fleetling.dev> %d +0000", name, at.Unix())
	text := fmt.Sprintf("tree %s\nauthor %s\ncommitter %s\n\npublish\n", s.tree, person, person)
	s.commit = s.add(plumbing.CommitObject, []byte(text))
	return s, nil
}

// folder holds []byte and folder.
type folder map[string]any

func (f folder) put(path string, content []byte) error {
	if !fs.ValidPath(path) || path == "." {
		return fs.ErrInvalid
	}
	name, rest, deeper := strings.Cut(path, "/")
	if err := checkName(name); err != nil {
		return err
	}
	if !deeper {
		if _, taken := f[name]; taken {
			return fs.ErrExist
		}
		f[name] = content
		return nil
	}
	if _, taken := f[name]; !taken {
		f[name] = folder{}
	}
	below, ok := f[name].(folder)
	if !ok {
		return fs.ErrExist
	}
	return below.put(rest, content)
}

func (s *snapshot) add(kind plumbing.ObjectType, content []byte) plumbing.Hash {
	id := plumbing.ComputeHash(kind, content)
	s.objects[id] = object{kind: kind, content: content}
	return id
}

// addFolder writes a tree object. Git sorts a folder as if its name ended in a
// slash.
func (s *snapshot) addFolder(f folder) plumbing.Hash {
	key := func(name string) string {
		if _, is := f[name].(folder); is {
			return name + "/"
		}
		return name
	}
	var raw bytes.Buffer
	for _, name := range slices.SortedFunc(maps.Keys(f), func(a, b string) int { return cmp.Compare(key(a), key(b)) }) {
		mode, id := "100644", plumbing.ZeroHash
		switch below := f[name].(type) {
		case folder:
			mode, id = "40000", s.addFolder(below)
		case []byte:
			id = s.add(plumbing.BlobObject, below)
		}
		fmt.Fprintf(&raw, "%s %s\x00%s", mode, name, id[:])
	}
	return s.add(plumbing.TreeObject, raw.Bytes())
}
