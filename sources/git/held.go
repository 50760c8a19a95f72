package git

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	packedRefs    = "packed-refs"
	maxPackedRefs = 4 << 20
	// maxLoose is how much newer packs may hold, in bytes, before they are made
	// one, unless the first one is larger.
	maxLoose = 64 << 20
)

// held is a bare repository of many branches on disk. Git can read it. The list
// of branches is written last, so what it names is complete.
type held struct {
	disk  *disk
	store *store
	heads map[string]plumbing.Hash
}

// openHeld opens what is there. Any error means that the folder can't be used and
// is to be replaced.
func openHeld(dir string, objectBytes int64) (*held, error) {
	d, err := openPacks(dir)
	if err != nil {
		return nil, err
	}
	heads, err := readPackedRefs(d.root)
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	if err := d.sweep(); err != nil {
		return nil, errors.Join(err, d.close())
	}
	s, err := d.open(objectBytes)
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return &held{disk: d, store: s, heads: heads}, nil
}

// createHeld makes an empty repository in the place of whatever is there.
func createHeld(dir string, objectBytes int64) (*held, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	d, err := createDisk(dir)
	if err != nil {
		return nil, err
	}
	h := &held{disk: d, store: newStore(objectBytes), heads: map[string]plumbing.Hash{}}
	err = writeFile(d.root, headFile, func(w io.Writer) error {
		_, err := io.WriteString(w, "ref: refs/heads/none\n") // git wants one; it is never there
		return err
	})
	if err := errors.Join(err, writePackList(d.root, nil), h.save()); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *held) close() error { return errors.Join(h.store.close(), h.disk.close()) }

// save writes git's own list: lines "ID NAME".
func (h *held) save() error {
	return writeFile(h.disk.root, packedRefs, func(w io.Writer) error {
		for _, name := range slices.Sorted(maps.Keys(h.heads)) {
			if _, err := fmt.Fprintf(w, "%s %s\n", h.heads[name], name); err != nil {
				return err
			}
		}
		return nil
	})
}

func readPackedRefs(root *os.Root) (map[string]plumbing.Hash, error) {
	text, err := readBounded(root, packedRefs, maxPackedRefs)
	if err != nil {
		return nil, err
	}
	heads := map[string]plumbing.Hash{}
	for line := range strings.Lines(text) {
		hex, name, found := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		id, err := parseID(hex)
		if err != nil || !found || checkBranch(name) != nil {
			return nil, fmt.Errorf("%s: %w", packedRefs, errGarbled)
		}
		heads[name] = id
	}
	return heads, nil
}

// take makes a received pack part of the repository.
func (h *held) take(in incoming) error {
	if in.pack == nil || slices.Contains(h.disk.packs, in.name) {
		return h.drop(in)
	}
	if err := in.install(h.disk); err != nil {
		return errors.Join(err, h.drop(in))
	}
	h.disk.packs = append(h.disk.packs, in.name)
	return nil
}

// drop forgets a received pack that is not to be part of the repository.
func (h *held) drop(in incoming) error {
	if in.pack == nil {
		return nil
	}
	h.store.packs = slices.DeleteFunc(h.store.packs, func(p *pack) bool { return p == in.pack })
	return in.file.Close()
}

// grown says whether the packs are to be made one: there are many, or the newer
// ones outweigh the first, which is what was left the last time.
func (h *held) grown() (bool, error) {
	if len(h.disk.packs) >= maxPacks {
		return true, nil
	}
	var first, newer int64
	for i, name := range h.disk.packs {
		info, err := h.disk.root.Stat(path.Join(packFolder, name+".pack"))
		if err != nil {
			return false, err
		}
		if i == 0 {
			first = info.Size()
		} else {
			newer += info.Size()
		}
	}
	return newer > max(first, maxLoose), nil
}
