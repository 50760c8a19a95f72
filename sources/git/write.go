package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetling/fleetling/sources"
)

// packWriter writes the entries of a pack, each object whole: go-git's encoder
// holds all objects at once.
type packWriter struct {
	to     io.Writer
	offset int64
}

// header starts a pack (gitformat-pack(5)).
func (w *packWriter) header(objects int) error {
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(objects))
	return w.write(head)
}

func (w *packWriter) write(data []byte) error {
	n, err := w.to.Write(data)
	w.offset += int64(n)
	return err
}

// add writes an object and gives its place.
func (w *packWriter) add(o object) (place, error) {
	var entry bytes.Buffer
	size := len(o.content)
	first, rest := byte(o.kind)<<4|byte(size&15), uint64(size>>4)
	if rest > 0 {
		first |= 0x80
	}
	entry.WriteByte(first)
	if rest > 0 {
		entry.Write(binary.AppendUvarint(nil, rest))
	}
	z := zlib.NewWriter(&entry)
	if _, err := z.Write(o.content); err != nil {
		return place{}, err
	}
	if err := z.Close(); err != nil {
		return place{}, err
	}
	p := place{
		kind: o.kind, offset: w.offset, size: int64(size), result: int64(size),
		crc: crc32.ChecksumIEEE(entry.Bytes()), id: plumbing.ComputeHash(o.kind, o.content),
	}
	return p, w.write(entry.Bytes())
}

func compareIDs(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) }

// compact makes one pack of what the branches and the commits of keep need, in a
// new folder that takes the place of the old one, when enough has come together.
func (x *exchange) compact(ctx context.Context, keep []string) error {
	due, err := x.held.grown()
	if err != nil || !due {
		return err
	}
	roots := slices.Collect(maps.Values(x.held.heads))
	for _, commit := range keep {
		id, err := parseID(commit)
		if p, _ := x.held.store.find(id); err == nil && p != nil {
			roots = append(roots, id)
		}
	}
	needed, err := reach(ctx, x.held.store, nil, roots...)
	if err != nil {
		return lost(err)
	}
	next, err := createHeld(x.refs.config.Dir+".new", x.Limits.ObjectBytes)
	if err != nil {
		return err
	}
	next.heads = maps.Clone(x.held.heads)
	if err := x.held.copyTo(ctx, next, needed, x.Limits); err != nil {
		return errors.Join(err, next.close(), os.RemoveAll(x.refs.config.Dir+".new"))
	}
	err = x.held.close()
	x.held = next // its files stay open under their new name
	return errors.Join(err, replaceDisk(x.refs.config.Dir, x.refs.config.Dir+".new"))
}

// copyTo writes some objects into another repository, as one pack.
func (h *held) copyTo(ctx context.Context, next *held, objects map[plumbing.Hash]plumbing.ObjectType, limits sources.Limits) error {
	file, err := next.disk.root.OpenFile(incomingPack, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	places, checksum, err := h.writeAll(ctx, file, objects)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	in, err := add(ctx, next.disk.root, file, places, checksum, limits, next.store)
	if err != nil {
		return err
	}
	return errors.Join(next.take(in), next.save())
}

func (h *held) writeAll(ctx context.Context, file *os.File, objects map[plumbing.Hash]plumbing.ObjectType) ([]place, plumbing.Hash, error) {
	var none plumbing.Hash
	w := &packWriter{to: file}
	if err := w.header(len(objects)); err != nil {
		return nil, none, err
	}
	var places []place
	ids := slices.SortedFunc(maps.Keys(objects), compareIDs)
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, none, err
		}
		content, err := h.store.object(objects[id], id)
		if err != nil {
			return nil, none, err
		}
		p, err := w.add(object{kind: objects[id], content: content})
		if err != nil {
			return nil, none, err
		}
		places = append(places, p)
	}
	checksum, err := seal(file, w.offset, len(places))
	return places, checksum, err
}
