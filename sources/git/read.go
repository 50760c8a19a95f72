package git

import (
	"bytes"
	"container/list"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// maxRecent bounds the objects kept for the deltas on them, in bytes.
const maxRecent = 16 << 20

// object is an object as it is after all deltas.
type object struct {
	kind    plumbing.ObjectType
	content []byte
}

// reader reads objects of one pack file. go-git's Packfile and Parser would hold
// every object, or every delta, of a chain at once: with 4095 of 8 MiB, a small
// pack needs 32 GiB. This one holds three.
type reader struct {
	scanner     *packfile.Scanner
	find        func(plumbing.Hash) (offset int64, ok bool)
	recent      *recent
	objectBytes int64
}

func newReader(file *os.File, objectBytes int64, kept *recent, find func(plumbing.Hash) (int64, bool)) *reader {
	return &reader{scanner: packfile.NewScanner(file), find: find, recent: kept, objectBytes: objectBytes}
}

// at gives the object whose entry stands at offset.
func (r *reader) at(offset int64) (object, error) {
	var deltas []int64
	for {
		if o, ok := r.recent.get(r, offset); ok {
			return r.apply(o, deltas)
		}
		header, err := r.header(offset)
		if err != nil {
			return object{}, err
		}
		if !header.Type.IsDelta() {
			content, err := r.inflate(header)
			if err != nil {
				return object{}, err
			}
			o := object{kind: header.Type, content: content}
			r.recent.put(r, offset, o)
			return r.apply(o, deltas)
		}
		if deltas = append(deltas, offset); len(deltas) > maxDeltaDepth {
			return object{}, garbled(fmt.Errorf("more than %d deltas", maxDeltaDepth))
		}
		if offset, err = r.baseOf(header); err != nil {
			return object{}, err
		}
	}
}

// apply makes an object of a base and the deltas at offsets, the last one first.
func (r *reader) apply(o object, deltas []int64) (object, error) {
	for _, offset := range slices.Backward(deltas) {
		header, err := r.header(offset)
		if err != nil {
			return object{}, err
		}
		delta, err := r.inflate(header)
		if err != nil {
			return object{}, err
		}
		if _, err := deltaResult(delta, r.objectBytes); err != nil {
			return object{}, err
		}
		content, err := packfile.PatchDelta(o.content, delta)
		if err != nil {
			return object{}, garbled(err)
		}
		o = object{kind: o.kind, content: content}
		r.recent.put(r, offset, o)
	}
	return o, nil
}

// size gives the size of the object at offset without making it.
func (r *reader) size(offset int64) (int64, error) {
	header, err := r.header(offset)
	if err != nil || !header.Type.IsDelta() {
		return header.Length, err
	}
	delta, err := r.inflate(header)
	if err != nil {
		return 0, err
	}
	return deltaResult(delta, r.objectBytes)
}

func (r *reader) header(offset int64) (packfile.ObjectHeader, error) {
	header, err := r.scanner.SeekObjectHeader(offset)
	if err != nil {
		return packfile.ObjectHeader{}, garbled(err)
	}
	if header.Length > r.objectBytes {
		return packfile.ObjectHeader{}, tooMuch("an object has %d bytes, limits.objectBytes allows %d", header.Length, r.objectBytes)
	}
	return *header, nil
}

// inflate reads what follows the header that was read last.
func (r *reader) inflate(header packfile.ObjectHeader) ([]byte, error) {
	entry, err := r.scanner.ReadObject()
	if err != nil {
		return nil, garbled(err)
	}
	defer entry.Close()
	content := bytes.NewBuffer(make([]byte, 0, header.Length))
	if _, err := io.Copy(content, entry); err != nil {
		return nil, garbled(err)
	}
	if int64(content.Len()) != header.Length {
		return nil, garbled(io.ErrUnexpectedEOF)
	}
	return content.Bytes(), nil
}

func (r *reader) baseOf(header packfile.ObjectHeader) (int64, error) {
	if header.Type == plumbing.OFSDeltaObject {
		return header.OffsetReference, nil
	}
	offset, ok := r.find(header.Reference)
	if !ok {
		return 0, garbled(fmt.Errorf("no base %s", header.Reference))
	}
	return offset, nil
}

// recent keeps the objects used last.
type recent struct {
	objects map[recentKey]*list.Element
	order   *list.List // of recentEntry, the last used first
	bytes   int
}

type recentKey struct {
	reader *reader
	offset int64
}

type recentEntry struct {
	key    recentKey
	object object
}

func newRecent() *recent {
	return &recent{objects: map[recentKey]*list.Element{}, order: list.New()}
}

func (c *recent) get(r *reader, offset int64) (object, bool) {
	e, ok := c.objects[recentKey{r, offset}]
	if !ok {
		return object{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(recentEntry).object, true
}

func (c *recent) put(r *reader, offset int64, o object) {
	key := recentKey{r, offset}
	c.objects[key] = c.order.PushFront(recentEntry{key: key, object: o})
	for c.bytes += len(o.content); c.bytes > maxRecent; {
		oldest := c.order.Remove(c.order.Back()).(recentEntry)
		delete(c.objects, oldest.key)
		c.bytes -= len(oldest.object.content)
	}
}
