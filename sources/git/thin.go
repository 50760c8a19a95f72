package git

import (
	"context"
	"crypto"
	"encoding/binary"
	"errors"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/hash"

	"github.com/fleetling/fleetling/sources"
)

// receiveThin is receive for a pack whose deltas may stand on what s has. Those
// bases are copied to the pack's end, so that it stands alone like any other.
func receiveThin(ctx context.Context, root *os.Root, r io.Reader, limits sources.Limits, s *store) (incoming, error) {
	file, err := root.OpenFile(incomingPack, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return incoming{}, err
	}
	places, checksum, err := scanPack(ctx, io.TeeReader(r, file), limits)
	if err == nil && len(places) > 0 {
		err = checkEnd(file, packName(checksum))
	}
	if err != nil || len(places) == 0 {
		return incoming{}, errors.Join(err, file.Close())
	}
	if bases := basesIn(s, places); len(bases) > 0 {
		if places, checksum, err = appendBases(file, places, bases, s); err != nil {
			return incoming{}, errors.Join(err, file.Close())
		}
	}
	return add(ctx, root, file, places, checksum, limits, s)
}

// basesIn gives the bases of deltas that s has. One that the pack has too does no
// harm.
func basesIn(s *store, places []place) []plumbing.Hash {
	var bases []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	for _, p := range places {
		if p.kind != plumbing.REFDeltaObject || seen[p.baseID] {
			continue
		}
		seen[p.baseID] = true
		if in, _ := s.find(p.baseID); in != nil {
			bases = append(bases, p.baseID)
		}
	}
	return bases
}

func appendBases(file *os.File, places []place, bases []plumbing.Hash, s *store) ([]place, plumbing.Hash, error) {
	var none plumbing.Hash
	end, err := file.Seek(int64(-checksumSize), io.SeekEnd)
	if err != nil {
		return nil, none, err
	}
	w := &packWriter{to: file, offset: end}
	for _, id := range bases {
		in, offset := s.find(id)
		o, err := in.reader.at(offset)
		if err != nil {
			return nil, none, s.damaged(id, err)
		}
		p, err := w.add(o)
		if err != nil {
			return nil, none, err
		}
		places = append(places, p)
	}
	checksum, err := seal(file, w.offset, len(places))
	return places, checksum, err
}

// seal writes the number of objects into the header of a pack and the checksum
// behind its end (gitformat-pack(5)).
func seal(file *os.File, end int64, objects int) (plumbing.Hash, error) {
	var checksum plumbing.Hash
	count := binary.BigEndian.AppendUint32(nil, uint32(objects))
	if _, err := file.WriteAt(count, 8); err != nil {
		return checksum, err
	}
	sum := hash.New(crypto.SHA1)
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, end)); err != nil {
		return checksum, err
	}
	copy(checksum[:], sum.Sum(nil))
	_, err := file.WriteAt(checksum[:], end)
	return checksum, err
}
