package carriertest

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery"
)

// patience is how long something is waited for that must happen.
const patience = 30 * time.Second

// Registry is an empty registry, for one test.
type Registry struct {
	// Open gives the carrier of a member. Two calls with one name are two
	// processes of one member.
	Open func(member string) discovery.Carrier
	// Writes counts what has been written to the registry by anybody. nil where it
	// can't be told.
	Writes func() int
}

// Run tests the carriers of a kind of registry. start makes an empty registry,
// which ends with the test that it is given.
func Run(t *testing.T, start func(t *testing.T) Registry) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Registry){
		"an empty registry has no heads, and that is no error":       testEmpty,
		"what was put is listed and read by everybody":               testPut,
		"a second put replaces the first":                            testReplace,
		"what is not in a put is taken out":                          testTakeOut,
		"parts that no put names any more are dropped":               testParts,
		"a put of the same writes nothing":                           testUnchanged,
		"a put after a restart of the same writes nothing":           testRestart,
		"heads are sorted by name":                                   testOrder,
		"what nobody has put is not found":                           testNotFound,
		"a member's bytes are not found at another":                  testOthers,
		"names and digests that are none are not found":              testNames,
		"large and many parts are carried":                           testSize,
		"a part under a digest that is not its own is refused":       testWrongPart,
		"members put at the same time":                               testConcurrent,
		"an ended context is an error, never an empty list":          testContext,
		"a carrier that tells of changes tells of each":              testWatch,
		"a carrier that tells of changes stops when its context has": testWatchEnds,
	} {
		t.Run(name, func(t *testing.T) { test(t, start(t)) })
	}
}

// own makes what a member may put, different for each version.
func own(member string, version, parts int) discovery.Own {
	o := discovery.Own{
		Record: fmt.Appendf(nil, "record of %s, version %d", member, version),
		Status: fmt.Appendf(nil, "status of %s, version %d", member, version),
		Parts:  map[discovery.Digest][]byte{},
	}
	for i := range parts {
		part := fmt.Appendf(nil, "part %d of %s, version %d", i, member, version)
		o.Parts[discovery.DigestOf(part)] = part
	}
	return o
}

// headOf is what is listed of what was put.
func headOf(member string, o discovery.Own) discovery.Head {
	h := discovery.Head{Member: member}
	if o.Record != nil {
		h.Record = discovery.DigestOf(o.Record)
	}
	if o.Status != nil {
		h.Status = discovery.DigestOf(o.Status)
	}
	return h
}

func put(t *testing.T, c discovery.Carrier, o discovery.Own) {
	t.Helper()
	require.NoError(t, c.Put(t.Context(), o))
}

// listed asserts what everybody sees. A carrier may need a moment to have it on
// all sides.
func listed(t *testing.T, c discovery.Carrier, want ...discovery.Head) {
	t.Helper()
	settled(t, func(ctx context.Context, t require.TestingT) {
		heads, err := c.Heads(ctx)
		require.NoError(t, err)
		if len(want) == 0 {
			assert.Empty(t, heads)
			return
		}
		assert.Equal(t, want, heads)
	})
}

// holds asserts that all that a member has put can be read. Who reads has listed
// before.
func holds(t *testing.T, c discovery.Carrier, member string, o discovery.Own) {
	t.Helper()
	all := [][]byte{o.Record, o.Status}
	for _, part := range o.Parts {
		all = append(all, part)
	}
	for _, want := range all {
		if want == nil {
			continue
		}
		settled(t, func(ctx context.Context, t require.TestingT) {
			got, err := c.Get(ctx, member, discovery.DigestOf(want))
			require.NoError(t, err)
			assert.True(t, bytes.Equal(want, got), "%.60q", got)
		})
	}
}

// absent asserts that nothing is found.
func absent(t *testing.T, c discovery.Carrier, member string, digest discovery.Digest) {
	t.Helper()
	settled(t, func(ctx context.Context, t require.TestingT) {
		got, err := c.Get(ctx, member, digest)
		require.ErrorIs(t, err, discovery.ErrNotFound)
		assert.Nil(t, got)
	})
}

// settled tries until the assertions hold.
func settled(t *testing.T, holds func(context.Context, require.TestingT)) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) { holds(t.Context(), c) }, patience, 20*time.Millisecond)
}
