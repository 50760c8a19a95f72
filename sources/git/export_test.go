package git

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"github.com/fleetling/fleetling/sources"
)

// Receive takes a pack into a repository in dir, and reads every object back.
func Receive(ctx context.Context, dir string, pack io.Reader, limits sources.Limits) error {
	d, err := createDisk(dir)
	if err != nil {
		return err
	}
	defer d.close()
	s := newStore(limits.ObjectBytes)
	defer s.close()
	in, err := receive(ctx, d.root, pack, limits, s)
	if err != nil || in.pack == nil {
		return err
	}
	entries, err := in.index.Entries()
	if err != nil {
		return err
	}
	for entry, err := entries.Next(); err == nil; entry, err = entries.Next() {
		if err := readBack(s, entry.Hash); err != nil {
			panic(err)
		}
	}
	return nil
}

// readBack gives an error where what was indexed can't be read.
func readBack(s *store, id plumbing.Hash) error {
	size, err := s.size(id)
	if err != nil {
		return err
	}
	for _, kind := range []plumbing.ObjectType{plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject} {
		if content, err := s.object(kind, id); err == nil {
			if int64(len(content)) != size {
				return fmt.Errorf("%s has %d bytes and says %d", id, len(content), size)
			}
			return nil
		}
	}
	return fmt.Errorf("%s can't be read", id)
}

// Entries gives the names in a tree object that pass all checks, and what would
// have been read as the tree object from them.
func Entries(raw []byte) (names []string, again []byte, err error) {
	entries, err := parseTree(raw)
	if err != nil {
		return nil, nil, err
	}
	var out bytes.Buffer
	modes := map[kind]string{kindFile: "100644", kindProgram: "100755", kindFolder: "40000", kindLink: "120000", kindSubmodule: "160000"}
	for _, e := range entries {
		if e.check() == nil {
			names = append(names, e.name)
		}
		fmt.Fprintf(&out, "%s %s\x00%s", modes[e.kind], e.name, e.id[:])
	}
	return names, out.Bytes(), nil
}

// Parents are those that parseCommit finds.
func Parents(raw []byte) (tree string, parents []string, err error) {
	id, ids, err := parseCommit(raw)
	for _, id := range ids {
		parents = append(parents, id.String())
	}
	return id.String(), parents, err
}

// Origin is what stands between http.Client and the network.
func Origin(r Remote, next http.RoundTripper) http.RoundTripper {
	e, err := r.open()
	if err != nil {
		panic(err)
	}
	return &origin{endpoint: e, service: uploadPack, next: next}
}

// Misindex makes the index of the only pack in dir say of each object that it
// stands where another does.
func Misindex(dir string) error {
	d, err := openDisk(dir)
	if err != nil {
		return err
	}
	defer d.close()
	index, err := readIndex(d.root, d.packs[0])
	if err != nil {
		return err
	}
	entries, err := index.EntriesByOffset()
	if err != nil {
		return err
	}
	w := new(idxfile.Writer)
	if err := w.OnHeader(0); err != nil {
		return err
	}
	last, err := entries.Next()
	for err == nil {
		var next *idxfile.Entry
		if next, err = entries.Next(); err == nil {
			w.Add(last.Hash, next.Offset, next.CRC32)
			last = next
		}
	}
	w.Add(last.Hash, 12, 0)
	if err := w.OnFooter(index.PackfileChecksum); err != nil {
		return err
	}
	wrong, err := w.Index()
	if err != nil {
		return err
	}
	if err := writeIndex(d.root, wrong); err != nil {
		return err
	}
	return d.root.Rename(incomingIndex, packFolder+"/"+d.packs[0]+".idx")
}
