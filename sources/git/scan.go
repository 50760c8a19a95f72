package git

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/fleetling/fleetling/sources"
)

// place is one entry of a pack.
type place struct {
	kind   plumbing.ObjectType // as it is stored: it may be a delta
	offset int64
	size   int64         // of what is stored, inflated
	result int64         // of the object: of a delta, what it makes
	base   int64         // of a delta by offset: where its base stands
	baseID plumbing.Hash // of a delta by reference: its base
	crc    uint32
	id     plumbing.Hash // zero for a delta, until it is resolved
	depth  int           // how many deltas the object is made by
	chain  int64         // the bytes that have to be handled to make the object
}

// scanPack reads a pack to its end without keeping any of its content, and
// refuses what would be too much to handle: the number of objects, the size an
// object says it has, the size it really has, the size a delta makes of its
// base. It gives the entries in the order of their offsets, and the checksum
// that the pack ends with.
func scanPack(ctx context.Context, r io.Reader, limits sources.Limits) ([]place, plumbing.Hash, error) {
	var none plumbing.Hash
	scanner := packfile.NewScanner(bufio.NewReaderSize(r, 64<<10))
	_, count, err := scanner.Header()
	if err != nil {
		return nil, none, garbled(err)
	}
	if int64(count) > int64(limits.Objects) {
		return nil, none, tooMuch("the pack holds %d objects, limits.objects allows %d", count, limits.Objects)
	}
	var places []place
	for range count {
		if err := ctx.Err(); err != nil {
			return nil, none, err
		}
		p, err := scanEntry(scanner, limits)
		if err != nil {
			return nil, none, err
		}
		places = append(places, p)
	}
	checksum, err := scanner.Checksum()
	if err != nil {
		return nil, none, garbled(err)
	}
	// The rest must be read so that whoever writes it down sees it all.
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, none, garbled(err)
	}
	return places, checksum, nil
}

func scanEntry(scanner *packfile.Scanner, limits sources.Limits) (place, error) {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return place{}, garbled(err)
	}
	if header.Length > limits.ObjectBytes {
		return place{}, tooMuch("an object of the pack has %d bytes, limits.objectBytes allows %d", header.Length, limits.ObjectBytes)
	}
	p := place{kind: header.Type, offset: header.Offset, size: header.Length, result: header.Length, base: header.OffsetReference, baseID: header.Reference}
	if !header.Type.IsDelta() && !isObject(header.Type) {
		return place{}, garbled(fmt.Errorf("object of type %d", header.Type))
	}
	var start prefix
	hash := plumbing.NewHasher(header.Type, header.Length)
	into := io.Writer(hash)
	if header.Type.IsDelta() {
		into = &start
	}
	var written int64
	written, p.crc, err = scanner.NextObject(into)
	switch {
	case errors.Is(err, packfile.ErrInflatedSizeMismatch):
		return place{}, tooMuch("an object of the pack is longer than the %d bytes that it says", header.Length)
	case err != nil:
		return place{}, garbled(err)
	case written != header.Length:
		return place{}, garbled(fmt.Errorf("object of %d bytes says %d", written, header.Length))
	case header.Type.IsDelta():
		p.result, err = deltaResult(start.bytes, limits.ObjectBytes)
		return p, err
	}
	p.id = hash.Sum()
	return p, nil
}

func isObject(kind plumbing.ObjectType) bool {
	switch kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		return true
	default:
		return false
	}
}

// deltaResult gives the size of what a delta makes. A delta starts with the
// sizes of its base and of its result (gitformat-pack(5)).
func deltaResult(start []byte, limit int64) (int64, error) {
	r := bytes.NewReader(start)
	if _, err := binary.ReadUvarint(r); err != nil {
		return 0, garbled(err)
	}
	size, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, garbled(err)
	}
	if size > uint64(limit) {
		return 0, tooMuch("a delta of the pack makes an object of %d bytes, limits.objectBytes allows %d", size, limit)
	}
	return int64(size), nil
}

// prefix keeps the first bytes of what is written: two sizes of a delta fit.
type prefix struct{ bytes []byte }

func (p *prefix) Write(data []byte) (int, error) {
	room := 2*binary.MaxVarintLen64 - len(p.bytes)
	p.bytes = append(p.bytes, data[:min(room, len(data))]...)
	return len(data), nil
}
