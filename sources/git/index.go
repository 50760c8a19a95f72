package git

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"github.com/fleetling/fleetling/sources"
)

const (
	// maxDeltaDepth is git's own bound.
	maxDeltaDepth = 4095
	// maxChainObjects bounds the bytes handled to make one object, in objects of
	// the largest size: git's own chains have 50.
	maxChainObjects = 64
)

// indexer finds the id of every object of a scanned pack.
type indexer struct {
	places []place
	reader *reader
	limit  int64 // of place.chain

	known   map[plumbing.Hash]int   // object -> place
	byID    map[plumbing.Hash][]int // base that is not known yet -> the deltas on it
	byPlace map[int][]int           // the same, where the base is known by its place
}

// indexPack resolves the deltas of a pack and gives its index.
func indexPack(ctx context.Context, file *os.File, checksum plumbing.Hash, places []place, limits sources.Limits) (*idxfile.MemoryIndex, error) {
	x := &indexer{
		places: places, limit: maxChainObjects * limits.ObjectBytes,
		known: map[plumbing.Hash]int{}, byID: map[plumbing.Hash][]int{}, byPlace: map[int][]int{},
	}
	x.reader = newReader(file, limits.ObjectBytes, newRecent(), x.find)
	for i := range places {
		// Each resolved object may be what others waited for.
		for todo := []int{i}; len(todo) > 0; {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			next := todo[len(todo)-1]
			released, err := x.resolve(next)
			if err != nil {
				return nil, err
			}
			todo = append(todo[:len(todo)-1], released...)
		}
	}
	if len(x.byID)+len(x.byPlace) > 0 {
		return nil, garbled(errors.New("deltas on what is not in the pack"))
	}
	return x.write(checksum)
}

// resolve finds the id of one object, or puts it aside until its base is known.
// It gives the deltas that waited for it.
func (x *indexer) resolve(i int) ([]int, error) {
	p := &x.places[i]
	if p.kind.IsDelta() {
		ready, err := x.stack(i)
		if err != nil || !ready {
			return nil, err
		}
		o, err := x.reader.at(p.offset)
		if err != nil {
			return nil, err
		}
		p.id = plumbing.ComputeHash(o.kind, o.content)
	} else {
		p.chain = p.result
	}
	if _, twice := x.known[p.id]; !twice {
		x.known[p.id] = i
	}
	released := append(x.byID[p.id], x.byPlace[i]...)
	delete(x.byID, p.id)
	delete(x.byPlace, i)
	return released, nil
}

// stack puts a delta on its base, where that is resolved.
func (x *indexer) stack(i int) (ready bool, _ error) {
	p := &x.places[i]
	base, found := x.known[p.baseID]
	if p.kind == plumbing.OFSDeltaObject {
		base, found = slices.BinarySearchFunc(x.places, p.base, func(p place, offset int64) int { return cmp.Compare(p.offset, offset) })
		if !found {
			return false, garbled(errors.New("a delta on what is no object"))
		}
		if x.places[base].id.IsZero() {
			x.byPlace[base] = append(x.byPlace[base], i)
			return false, nil
		}
	}
	if !found {
		x.byID[p.baseID] = append(x.byID[p.baseID], i)
		return false, nil
	}
	p.depth = x.places[base].depth + 1
	p.chain = x.places[base].chain + p.size + p.result
	if p.depth > maxDeltaDepth {
		return false, tooMuch("the pack has a chain of more than %d deltas", maxDeltaDepth)
	}
	if p.chain > x.limit {
		return false, tooMuch("the pack has a chain of deltas of more than %d bytes, %d times limits.objectBytes", x.limit, maxChainObjects)
	}
	return true, nil
}

func (x *indexer) find(id plumbing.Hash) (int64, bool) {
	i, ok := x.known[id]
	if !ok {
		return 0, false
	}
	return x.places[i].offset, true
}

// write makes the index. Of an object that is there twice it lists the one that
// was resolved first: a second one may be a delta on what was made from the first,
// and reading it would go round in a circle.
func (x *indexer) write(checksum plumbing.Hash) (*idxfile.MemoryIndex, error) {
	w := new(idxfile.Writer)
	if err := w.OnHeader(uint32(len(x.places))); err != nil {
		return nil, err
	}
	for i, p := range x.places {
		if x.known[p.id] == i {
			w.Add(p.id, uint64(p.offset), p.crc)
		}
	}
	if err := w.OnFooter(checksum); err != nil {
		return nil, err
	}
	return w.Index()
}
