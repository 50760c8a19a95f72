package carriertest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/fleetling/fleetling/discovery"
)

// Tricks are what a Hostile carrier does. The zero value is an honest one.
type Tricks struct {
	// Err is what every call fails with.
	Err error
	// Wipe lists nobody and has nothing: an emptied registry, which is no error.
	Wipe bool
	// Withhold are members that are not listed, and have nothing.
	Withhold []string
	// Replay are members of whom the first head that was ever seen is listed, with
	// its bytes, however old.
	Replay []string
	// Corrupt are members whose bytes have one bit turned.
	Corrupt []string
	// Swap lists each of two members with the other's head, and has the other's
	// bytes there.
	Swap [2]string
	// Lose are members who are listed, and have nothing.
	Lose []string
	// Reverse lists members in the wrong order, and twice.
	Reverse bool
	// Flood lists so many members that nobody has heard of.
	Flood int
	// Swallow takes what is put for done and does not pass it on.
	Swallow bool
}

// Hostile is a carrier between another one and its reader. It remembers all that
// it has passed on. It is safe for concurrent use.
type Hostile struct {
	inner discovery.Carrier

	mu     sync.Mutex
	tricks Tricks
	first  map[string]discovery.Head
	bytes  map[discovery.Digest][]byte
	puts   int
}

var _ discovery.Carrier = (*Hostile)(nil)

// NewHostile makes an honest one.
func NewHostile(inner discovery.Carrier) *Hostile {
	return &Hostile{inner: inner, first: map[string]discovery.Head{}, bytes: map[discovery.Digest][]byte{}}
}

// Play switches to other tricks.
func (h *Hostile) Play(tricks Tricks) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tricks = tricks
}

// Puts is how often somebody put something.
func (h *Hostile) Puts() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.puts
}

func (h *Hostile) playing() Tricks {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tricks
}

// Put is discovery.Carrier's.
func (h *Hostile) Put(ctx context.Context, own discovery.Own) error {
	h.mu.Lock()
	h.puts++
	tricks := h.tricks
	h.mu.Unlock()
	switch {
	case tricks.Err != nil:
		return tricks.Err
	case tricks.Swallow:
		return ctx.Err()
	default:
		return h.inner.Put(ctx, own)
	}
}

// Heads is discovery.Carrier's.
func (h *Hostile) Heads(ctx context.Context) ([]discovery.Head, error) {
	tricks := h.playing()
	if tricks.Err != nil {
		return nil, tricks.Err
	}
	heads, err := h.inner.Heads(ctx)
	if err != nil {
		return nil, err
	}
	h.remember(ctx, heads)
	if tricks.Wipe {
		return nil, nil
	}
	heads = slices.DeleteFunc(heads, func(head discovery.Head) bool { return slices.Contains(tricks.Withhold, head.Member) })
	for i, head := range heads {
		if slices.Contains(tricks.Replay, head.Member) {
			heads[i] = h.firstOf(head.Member)
		}
	}
	swap(heads, tricks.Swap)
	for i := range tricks.Flood {
		heads = append(heads, discovery.Head{Member: fmt.Sprintf("zz-flood-%d", i), Record: discovery.DigestOf(fmt.Append(nil, i))})
	}
	if tricks.Reverse {
		slices.Reverse(heads)
		heads = append(heads, heads...)
	}
	return heads, nil
}

// Get is discovery.Carrier's.
func (h *Hostile) Get(ctx context.Context, member string, digest discovery.Digest) ([]byte, error) {
	tricks := h.playing()
	switch {
	case tricks.Err != nil:
		return nil, tricks.Err
	case tricks.Wipe, slices.Contains(tricks.Withhold, member), slices.Contains(tricks.Lose, member):
		return nil, discovery.ErrNotFound
	case slices.Contains(tricks.Replay, member):
		return h.remembered(digest)
	case member == tricks.Swap[0]:
		member = tricks.Swap[1]
	case member == tricks.Swap[1]:
		member = tricks.Swap[0]
	}
	data, err := h.inner.Get(ctx, member, digest)
	if err != nil {
		return nil, err
	}
	h.keep(digest, data)
	if slices.Contains(tricks.Corrupt, member) && len(data) > 0 {
		data = bytes.Clone(data)
		data[len(data)/2] ^= 1
	}
	return data, nil
}

// remember keeps the first head of each member and, as far as they can be had,
// its bytes. Parts are kept when they are read.
func (h *Hostile) remember(ctx context.Context, heads []discovery.Head) {
	for _, head := range heads {
		h.mu.Lock()
		_, known := h.first[head.Member]
		if !known {
			h.first[head.Member] = head
		}
		h.mu.Unlock()
		if known {
			continue
		}
		for _, digest := range []discovery.Digest{head.Record, head.Status} {
			if data, err := h.inner.Get(ctx, head.Member, digest); err == nil {
				h.keep(digest, data)
			}
		}
	}
}

func (h *Hostile) keep(digest discovery.Digest, data []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes[digest] = bytes.Clone(data)
}

func (h *Hostile) firstOf(member string) discovery.Head {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first[member]
}

func (h *Hostile) remembered(digest discovery.Digest) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	data, ok := h.bytes[digest]
	if !ok {
		return nil, discovery.ErrNotFound
	}
	return bytes.Clone(data), nil
}

// swap exchanges the heads of two members who are both listed.
func swap(heads []discovery.Head, names [2]string) {
	index := func(name string) int {
		return slices.IndexFunc(heads, func(h discovery.Head) bool { return h.Member == name })
	}
	a, b := index(names[0]), index(names[1])
	if a < 0 || b < 0 {
		return
	}
	heads[a], heads[b] = heads[b], heads[a]
	heads[a].Member, heads[b].Member = names[0], names[1]
}
