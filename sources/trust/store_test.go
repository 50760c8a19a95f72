package trust

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources/gittest"
)

// store is a Repository in memory, with the objects of a real one as git gives
// them.
type store struct {
	objects map[string][]byte
	kinds   map[string]string
	// reads counts the commits read, and broken are objects that can't be.
	reads  int
	broken map[string]error
}

func load(tb testing.TB, r *gittest.Repo) *store {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "git", "cat-file", "--batch", "--batch-all-objects")
	cmd.Dir = r.Dir
	out, err := cmd.Output()
	require.NoError(tb, err)
	s := &store{objects: map[string][]byte{}, kinds: map[string]string{}, broken: map[string]error{}}
	for len(out) > 0 {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		var id, kind string
		var size int
		_, err := fmt.Sscan(string(head), &id, &kind, &size)
		require.NoError(tb, err)
		s.objects[id], s.kinds[id] = rest[:size], kind
		out = rest[size+1:]
	}
	return s
}

// put adds a commit object and gives its id.
func (s *store) put(raw string) string { return s.add("commit", raw) }

// putTree adds a copy of a tree with one more empty file, whose name sorts last.
func (s *store) putTree(id, name string) string {
	blob, err := hex.DecodeString(s.add("blob", ""))
	if err != nil {
		return err.Error()
	}
	return s.add("tree", string(s.objects[id])+"100644 "+name+"\x00"+string(blob))
}

func (s *store) add(kind, data string) string {
	id := gitID(kind, data)
	s.objects[id], s.kinds[id] = []byte(data), kind
	return id
}

// objectID is the id of a commit.
func objectID(raw string) string { return gitID("commit", raw) }

func gitID(kind, data string) string {
	sum := sha1.Sum(fmt.Appendf(nil, "%s %d\x00%s", kind, len(data), data))
	return hex.EncodeToString(sum[:])
}

func (s *store) object(id, kind string) ([]byte, error) {
	if err := s.broken[id]; err != nil {
		return nil, err
	}
	if s.kinds[id] != kind {
		return nil, &fs.PathError{Op: "read", Path: id, Err: fs.ErrNotExist}
	}
	return s.objects[id], nil
}

func (s *store) Commit(_ context.Context, id string) ([]byte, error) {
	s.reads++
	return s.object(id, "commit")
}

func (s *store) Tree(_ context.Context, id string) (fs.FS, error) {
	files := fstest.MapFS{}
	return files, s.list(files, "", id)
}

func (s *store) list(files fstest.MapFS, prefix, id string) error {
	if id == emptyTree {
		return nil
	}
	data, err := s.object(id, "tree")
	for len(data) > 0 && err == nil {
		head, rest, _ := bytes.Cut(data, []byte{0})
		mode, name, _ := strings.Cut(string(head), " ")
		child := hex.EncodeToString(rest[:sha1.Size])
		data = rest[sha1.Size:]
		if mode == "40000" {
			err = s.list(files, prefix+name+"/", child)
			continue
		}
		var blob []byte
		blob, err = s.object(child, "blob")
		files[prefix+name] = &fstest.MapFile{Data: blob, Mode: 0o644}
	}
	return err
}

// emptyTree is the id of the tree without entries.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
