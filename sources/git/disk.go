package git

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	headFile   = "HEAD"
	packList   = "objects/info/packs"
	damageMark = "damaged"
	maxList    = 64 << 10
)

// disk is a repository's folder: a bare repository that git can read, its head
// detached. What counts is on the list of packs; HEAD is written last, so the
// commit it names is complete.
type disk struct {
	root  *os.Root
	head  plumbing.Hash
	packs []string
}

// openDisk opens a repository with a head. Any error means that the folder can't
// be used and is to be replaced.
func openDisk(dir string) (*disk, error) {
	d, err := openPacks(dir)
	if err != nil {
		return nil, err
	}
	if d.head, err = readHead(d.root); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// openPacks looks at what is cheap to look at.
func openPacks(dir string) (_ *disk, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Close())
		}
	}()
	if _, err := root.Lstat(damageMark); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, errDamaged)
	}
	d := &disk{root: root}
	if d.packs, err = readPackList(root); err != nil {
		return nil, err
	}
	for _, name := range d.packs {
		if err := checkTails(root, name); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// createDisk makes an empty repository.
func createDisk(dir string) (*disk, error) {
	for _, folder := range []string{packFolder, "objects/info", "refs"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &disk{root: root}, nil
}

// removeLeftovers removes what a killed clone left beside dir.
func removeLeftovers(dir string) error {
	return errors.Join(os.RemoveAll(dir+".new"), os.RemoveAll(dir+".old"))
}

// replaceDisk puts the folder next in the place of dir. Killed in between, the
// folder is not there, and the next fetch clones.
func replaceDisk(dir, next string) error {
	old := dir + ".old"
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(next, dir); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

func readHead(root *os.Root) (plumbing.Hash, error) {
	text, err := readBounded(root, headFile, maxList)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return parseID(strings.TrimSuffix(text, "\n"))
}

func (d *disk) setHead(head plumbing.Hash) error {
	return writeFile(d.root, headFile, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, head)
		return err
	})
}

func (d *disk) close() error { return d.root.Close() }

// readPackList reads git's own list: lines "P pack-ID.pack".
func readPackList(root *os.Root) ([]string, error) {
	text, err := readBounded(root, packList, maxList)
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(strings.TrimSuffix(line, ".pack\n"), "P pack-")
		id, err := parseID(name)
		if !ok || err != nil {
			return nil, fmt.Errorf("%s: %w", packList, errGarbled)
		}
		names = append(names, packName(id))
	}
	return names, nil
}

func writePackList(root *os.Root, names []string) error {
	return writeFile(root, packList, func(w io.Writer) error {
		for _, name := range names {
			if _, err := fmt.Fprintf(w, "P %s.pack\n", name); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkTails finds what was cut off, without reading a pack.
func checkTails(root *os.Root, name string) error {
	for _, f := range []struct {
		extension string
		back      int
	}{{".pack", checksumSize}, {".idx", 2 * checksumSize}} {
		file, err := root.Open(path.Join(packFolder, name+f.extension))
		if err != nil {
			return err
		}
		if err := errors.Join(checkTail(file, f.back, name), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what a killed fetch left.
func (d *disk) sweep() error {
	entries, err := fs.ReadDir(d.root.FS(), packFolder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if slices.Contains(d.packs, strings.TrimSuffix(name, path.Ext(name))) {
			continue
		}
		if err := d.root.RemoveAll(path.Join(packFolder, name)); err != nil {
			return err
		}
	}
	return nil
}

// open opens all packs.
func (d *disk) open(objectBytes int64) (*store, error) {
	s := newStore(objectBytes)
	for _, name := range d.packs {
		index, file, err := openPack(d.root, name)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w (%s)", name, errDamaged, err.Error()), s.close())
		}
		s.add(index, file)
	}
	return s, nil
}

// writeFile replaces a file as a whole, or not at all.
func writeFile(root *os.Root, name string, fill func(io.Writer) error) error {
	next := name + ".next"
	file, err := root.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(fill(file), file.Sync(), file.Close()); err != nil {
		return err
	}
	return root.Rename(next, name)
}

func readBounded(root *os.Root, name string, limit int64) (string, error) {
	file, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, limit))
	return string(text), err
}

// parseID reads 40 lower-case hexadecimal digits.
func parseID(text string) (plumbing.Hash, error) {
	id := plumbing.NewHash(text)
	if id.String() != text {
		return plumbing.ZeroHash, fmt.Errorf("%.60q is not an object id: %w", text, errGarbled)
	}
	return id, nil
}
