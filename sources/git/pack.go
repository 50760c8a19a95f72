package git

import (
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

const (
	packFolder   = "objects/pack"
	checksumSize = len(plumbing.Hash{})
)

// errMissing and errDamaged say what is wrong with the repository on disk. They
// are told apart from the file system's "not there", which callers take for an
// answer.
var (
	errMissing = errors.New("not in the repository on disk")
	errDamaged = errors.New("the repository on disk is damaged, the next fetch replaces it")
)

// pack is one open pack with its index in memory.
type pack struct {
	index  *idxfile.MemoryIndex
	file   *os.File
	reader *reader
}

// openPack checks what is cheap to check: the index as a whole, and that the
// pack ends as it was written.
func openPack(root *os.Root, name string) (*idxfile.MemoryIndex, *os.File, error) {
	index, err := readIndex(root, name)
	if err != nil {
		return nil, nil, err
	}
	file, err := root.Open(path.Join(packFolder, name+".pack"))
	if err != nil {
		return nil, nil, err
	}
	if err := checkTail(file, checksumSize, name); err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return index, file, nil
}

func readIndex(root *os.Root, name string) (*idxfile.MemoryIndex, error) {
	file, err := root.Open(path.Join(packFolder, name+".idx"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	index := idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(file).Decode(index); err != nil {
		return nil, err
	}
	if packName(index.PackfileChecksum) != name {
		return nil, fmt.Errorf("%s.idx: the index of another pack", name)
	}
	return index, nil
}

// packName is the name of pack and index without extension.
func packName(checksum plumbing.Hash) string { return "pack-" + checksum.String() }

// checkTail compares the name with the checksum that stands back bytes from the
// end of a pack (20) or of its index (40).
func checkTail(file *os.File, back int, name string) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var checksum plumbing.Hash
	if _, err := file.ReadAt(checksum[:], info.Size()-int64(back)); err != nil {
		return fmt.Errorf("%s: %w", file.Name(), err)
	}
	if packName(checksum) != name {
		return fmt.Errorf("%s: cut off", file.Name())
	}
	return nil
}

// find gives the offset of an object.
func (p *pack) find(id plumbing.Hash) (int64, bool) {
	offset, err := p.index.FindOffset(id)
	return offset, err == nil
}

// store are the packs of one repository. It is not safe for concurrent use.
type store struct {
	packs       []*pack
	recent      *recent
	objectBytes int64
}

func newStore(objectBytes int64) *store { return &store{recent: newRecent(), objectBytes: objectBytes} }

// add takes over file.
func (s *store) add(index *idxfile.MemoryIndex, file *os.File) *pack {
	p := &pack{index: index, file: file}
	p.reader = newReader(file, s.objectBytes, s.recent, p.find)
	s.packs = append(s.packs, p)
	return p
}

func (s *store) close() error {
	var errs []error
	for _, p := range s.packs {
		errs = append(errs, p.file.Close())
	}
	return errors.Join(errs...)
}

// find gives the pack that has the object, or nil, and the place there.
func (s *store) find(id plumbing.Hash) (*pack, int64) {
	for _, p := range s.packs {
		if offset, ok := p.find(id); ok {
			return p, offset
		}
	}
	return nil, 0
}

// object gives the content of an object, compared with its id. Errors are
// errMissing, errDamaged, a limitError, and, for an object of another kind, a
// contentError.
func (s *store) object(kind plumbing.ObjectType, id plumbing.Hash) ([]byte, error) {
	p, offset := s.find(id)
	if p == nil {
		return nil, fmt.Errorf("%s %s: %w", kind, id, errMissing)
	}
	o, err := p.reader.at(offset)
	if err != nil {
		return nil, s.damaged(id, err)
	}
	if plumbing.ComputeHash(o.kind, o.content) != id {
		return nil, s.damaged(id, errors.New("its content is not what its id says"))
	}
	if o.kind != kind {
		return nil, contentError(fmt.Sprintf("%s is a %s where a %s is expected", id, o.kind, kind))
	}
	return o.content, nil
}

// size gives the size of an object without reading all of it.
func (s *store) size(id plumbing.Hash) (int64, error) {
	p, offset := s.find(id)
	if p == nil {
		return 0, fmt.Errorf("%s: %w", id, errMissing)
	}
	size, err := p.reader.size(offset)
	if err != nil {
		return 0, s.damaged(id, err)
	}
	return size, nil
}

// damaged does not wrap err, which may be one that means "not there".
func (s *store) damaged(id plumbing.Hash, err error) error {
	if _, big := errors.AsType[*limitError](err); big {
		return fmt.Errorf("%s: %w", id, err)
	}
	return fmt.Errorf("%s: %w (%s)", id, errDamaged, err.Error())
}
