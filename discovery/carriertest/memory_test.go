package carriertest_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/carriertest"
)

// shelf is a registry in memory, to test the tests with.
type shelf struct {
	mu      sync.Mutex
	members map[string]discovery.Own
	writes  int
	changed chan struct{} // closed and replaced with every write
}

type memory struct {
	shelf  *shelf
	member string
}

func newShelf() *shelf {
	return &shelf{members: map[string]discovery.Own{}, changed: make(chan struct{})}
}

func (m memory) Put(ctx context.Context, own discovery.Own) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for digest, part := range own.Parts {
		if discovery.DigestOf(part) != digest {
			return errors.New("not its digest")
		}
	}
	m.shelf.mu.Lock()
	defer m.shelf.mu.Unlock()
	old := m.shelf.members[m.member]
	same := bytes.Equal(old.Record, own.Record) && bytes.Equal(old.Status, own.Status) && maps.EqualFunc(old.Parts, own.Parts, bytes.Equal)
	if same {
		return nil
	}
	m.shelf.members[m.member] = own
	m.shelf.writes++
	close(m.shelf.changed)
	m.shelf.changed = make(chan struct{})
	return nil
}

func (m memory) Heads(ctx context.Context) ([]discovery.Head, error) {
	heads, _, err := m.look(ctx)
	return heads, err
}

func (m memory) look(ctx context.Context) ([]discovery.Head, chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	m.shelf.mu.Lock()
	defer m.shelf.mu.Unlock()
	var heads []discovery.Head
	for _, name := range slices.Sorted(maps.Keys(m.shelf.members)) {
		head := discovery.Head{Member: name}
		if o := m.shelf.members[name]; o.Record != nil {
			head.Record = discovery.DigestOf(o.Record)
		}
		if o := m.shelf.members[name]; o.Status != nil {
			head.Status = discovery.DigestOf(o.Status)
		}
		heads = append(heads, head)
	}
	return heads, m.shelf.changed, nil
}

func (m memory) Get(ctx context.Context, member string, digest discovery.Digest) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.shelf.mu.Lock()
	defer m.shelf.mu.Unlock()
	o := m.shelf.members[member]
	for _, data := range append(slices.Collect(maps.Values(o.Parts)), o.Record, o.Status) {
		if data != nil && discovery.DigestOf(data) == digest {
			return data, nil
		}
	}
	return nil, discovery.ErrNotFound
}

func (m memory) Watch(ctx context.Context, changed func(discovery.Head)) error {
	last := map[string]discovery.Head{}
	for {
		heads, next, err := m.look(ctx)
		if err != nil {
			return err
		}
		for _, head := range heads {
			if last[head.Member] != head {
				changed(head)
				last[head.Member] = head
			}
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestACarrierInMemoryPasses(t *testing.T) {
	carriertest.Run(t, func(*testing.T) carriertest.Registry {
		s := newShelf()
		return carriertest.Registry{
			Open: func(member string) discovery.Carrier { return memory{shelf: s, member: member} },
			Writes: func() int {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.writes
			},
		}
	})
}

func TestAHostileCarrierWithoutTricksPasses(t *testing.T) {
	carriertest.Run(t, func(*testing.T) carriertest.Registry {
		s := newShelf()
		return carriertest.Registry{Open: func(member string) discovery.Carrier {
			return carriertest.NewHostile(memory{shelf: s, member: member})
		}}
	})
}

func TestHostilePlaysItsTricks(t *testing.T) {
	s := newShelf()
	alice, bob := memory{shelf: s, member: "alice"}, memory{shelf: s, member: "bob"}
	old := discovery.Own{Record: []byte("old"), Status: []byte("s")}
	now := discovery.Own{Record: []byte("new"), Status: []byte("s")}
	theirs := discovery.Own{Record: []byte("bob's")}
	require.NoError(t, alice.Put(t.Context(), old))
	require.NoError(t, bob.Put(t.Context(), theirs))
	h := carriertest.NewHostile(bob)
	_, err := h.Heads(t.Context())
	require.NoError(t, err)
	require.NoError(t, alice.Put(t.Context(), now))

	aliceNow := discovery.Head{Member: "alice", Record: discovery.DigestOf(now.Record), Status: discovery.DigestOf(now.Status)}
	aliceOld := discovery.Head{Member: "alice", Record: discovery.DigestOf(old.Record), Status: discovery.DigestOf(old.Status)}
	bobNow := discovery.Head{Member: "bob", Record: discovery.DigestOf(theirs.Record)}
	down := errors.New("down")
	for name, test := range map[string]struct {
		tricks carriertest.Tricks
		heads  []discovery.Head
		err    error
		record string // what Get gives for what is listed of alice, "" for not found
	}{
		"none":     {heads: []discovery.Head{aliceNow, bobNow}, record: "new"},
		"err":      {tricks: carriertest.Tricks{Err: down}, err: down},
		"wipe":     {tricks: carriertest.Tricks{Wipe: true}},
		"withhold": {tricks: carriertest.Tricks{Withhold: []string{"alice"}}, heads: []discovery.Head{bobNow}},
		"replay":   {tricks: carriertest.Tricks{Replay: []string{"alice"}}, heads: []discovery.Head{aliceOld, bobNow}, record: "old"},
		"corrupt":  {tricks: carriertest.Tricks{Corrupt: []string{"alice"}}, heads: []discovery.Head{aliceNow, bobNow}, record: "ndw"},
		"lose":     {tricks: carriertest.Tricks{Lose: []string{"alice"}}, heads: []discovery.Head{aliceNow, bobNow}},
		"reverse":  {tricks: carriertest.Tricks{Reverse: true}, heads: []discovery.Head{bobNow, aliceNow, bobNow, aliceNow}, record: "new"},
		"flood": {tricks: carriertest.Tricks{Flood: 1}, record: "new", heads: []discovery.Head{
			aliceNow, bobNow, {Member: "zz-flood-0", Record: discovery.DigestOf([]byte("0"))},
		}},
		"swap": {tricks: carriertest.Tricks{Swap: [2]string{"alice", "bob"}}, record: "bob's", heads: []discovery.Head{
			{Member: "alice", Record: bobNow.Record}, {Member: "bob", Record: aliceNow.Record, Status: aliceNow.Status},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h.Play(test.tricks)
			heads, err := h.Heads(t.Context())
			require.ErrorIs(t, err, test.err)
			assert.Equal(t, test.heads, heads)
			for _, head := range heads {
				if head.Member != "alice" {
					continue
				}
				data, err := h.Get(t.Context(), "alice", head.Record)
				assert.Equal(t, test.record, string(data))
				assert.Equal(t, test.record == "", errors.Is(err, discovery.ErrNotFound))
			}
		})
	}
}

func TestHostileSwallowsWhatIsPut(t *testing.T) {
	alice := memory{shelf: newShelf(), member: "alice"}
	h := carriertest.NewHostile(alice)
	h.Play(carriertest.Tricks{Swallow: true})
	require.NoError(t, h.Put(t.Context(), discovery.Own{Record: []byte("r")}))
	heads, err := alice.Heads(t.Context())
	require.NoError(t, err)
	assert.Empty(t, heads)
	assert.Equal(t, 1, h.Puts())
}
