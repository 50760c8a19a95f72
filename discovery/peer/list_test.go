package peer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/peer"
)

// list is n entries c0, c1, ... without those left out, and ours.
func list(n int, without ...int) []peer.Entry {
	gone := map[int]bool{}
	for _, i := range without {
		gone[i] = true
	}
	entries := []peer.Entry{{Name: "here"}}
	for i := range n {
		if !gone[i] {
			entries = append(entries, peer.Entry{Name: fmt.Sprintf("c%d", i), Ranges: ranges(fmt.Sprintf("10.%d.0.0/16", i))})
		}
	}
	return entries
}

func TestWhoIsGoneFromTheListIsRemovedAtOnce(t *testing.T) {
	w, east := honest(t)
	w.SetList(append(list(4, 1), east.entry(ranges("10.1.0.0/16")...)), nil)
	out := w.SetList(list(4, 1), nil)
	assert.Equal(t, []peer.Reason{peer.LeftClusterList}, reasons(out))
	assert.Equal(t, []peer.Service{cart}, out.Changed)
	assert.Empty(t, w.Of(cart))
	assert.Equal(t, []string{"c0", "c2", "c3"}, w.Names())
	assert.True(t, w.Settled("east", cart))
	assert.Equal(t, peer.UnknownMember, w.Take("east", east.next(), w.now).Problem.Reason)
}

func TestMoreThanAThirdGoneInOneCommitIsHeldUntilAcknowledged(t *testing.T) {
	w := newWorld(t)
	w.SetList(list(8), nil)
	out := w.SetList(list(8, 0, 1, 2), nil)
	require.NotContains(t, reasons(out), peer.RemovalHeld, "3 of 9 are not more than a third")

	w.SetList(list(8), nil)
	out = w.SetList(list(9, 0, 1, 2, 3), nil)
	require.Equal(t, peer.RemovalHeld, out.Events[0].Reason)
	assert.True(t, out.Events[0].Warning)
	held := []string{"c0", "c1", "c2", "c3"}
	digest := peer.RemovalDigest([]string{"c3", "c2", "c1", "c0"})
	assert.Contains(t, out.Events[0].Message, string(digest))
	assert.Equal(t, held, w.Held())
	assert.Contains(t, w.Names(), "c3")
	assert.Contains(t, w.Names(), "c8", "the rest goes on")

	assert.Empty(t, w.SetList(list(9, 0, 1, 2, 3), []discovery.Digest{"sha256:other"}).Events, "told once")
	w.SetList(list(9, 0, 1, 2, 3, 4), nil)
	assert.NotContains(t, w.Names(), "c4", "a single one goes on being removed")
	assert.Equal(t, held, w.Held())

	next := w.restart()
	assert.Equal(t, held, next.Held(), "over a restart")
	out = next.SetList(list(9, 0, 1, 2, 3, 4), []discovery.Digest{digest})
	assert.Equal(t, peer.RemovalReleased, out.Events[0].Reason)
	assert.Empty(t, next.Held())
	assert.Equal(t, []string{"c5", "c6", "c7", "c8"}, next.Names())
}

func TestWhoIsHeldAndComesBackIsHeldNoLonger(t *testing.T) {
	w := newWorld(t)
	w.SetList(list(8), nil)
	w.SetList(list(8, 0, 1, 2, 3), nil)
	w.SetList(list(8, 1, 2, 3), nil)
	assert.Equal(t, []string{"c1", "c2", "c3"}, w.Held())
	w.SetList(list(8), nil)
	assert.Empty(t, w.Held())
	assert.Len(t, w.Names(), 8)
}

func TestAnEmptyListIsHeldAsWell(t *testing.T) {
	w, _ := honest(t)
	out := w.SetList(nil, nil)
	assert.Equal(t, []peer.Reason{peer.RemovalHeld}, reasons(out))
	assert.Len(t, w.Of(cart), 1)
}

func TestARemovalWhileTheAgentWasDownIsHeldWithKeysAndRanges(t *testing.T) {
	w, east := honest(t)
	next := w.restart()
	assert.Equal(t, peer.RemovalHeld, next.SetList([]peer.Entry{{Name: "here"}}, nil).Events[0].Reason)
	require.Zero(t, next.take(east, east.next()).Problem)
	assert.Equal(t, map[string][]string{"east": {"10.1.0.1", "10.1.0.2"}}, addresses(next.Of(cart)))
}

func TestRangesThatOverlapAreImportedOfTheFirstNameOnlyAndNamedOnBoth(t *testing.T) {
	w, east := honest(t)
	west := newCluster(t, "west")
	west.exports(cart, "10.1.128.1")
	entries := func(first, second string) []peer.Entry {
		return []peer.Entry{{Name: "here"}, east.entry(ranges(first)...), west.entry(ranges(second)...)}
	}
	out := w.SetList(entries("10.1.0.0/16", "10.1.128.0/24"), nil)
	assert.Equal(t, []peer.Reason{peer.OverlappingRanges, peer.OverlappingRanges}, reasons(out))
	require.Zero(t, w.take(west, west.next()).Problem, "its record is taken")
	assert.Equal(t, map[string][]string{"east": {"10.1.0.1", "10.1.0.2"}}, addresses(w.Of(cart)))
	assert.Equal(t, peer.OverlappingRanges, w.view("west").Problem.Reason)
	assert.Contains(t, w.view("west").Problem.Message, "10.1.128.0/24 overlaps one of east")
	assert.Zero(t, w.view("east").Problem)
	assert.Contains(t, w.view("east").Overlap.Message, "of west, of which nothing is imported")
	assert.True(t, w.Settled("west", cart))

	out = w.SetList(entries("10.1.0.0/17", "10.1.128.0/24"), nil)
	assert.Equal(t, []peer.Reason{peer.ProblemResolved, peer.ProblemResolved}, reasons(out))
	assert.Equal(t, []peer.Service{cart}, out.Changed)
	assert.Equal(t, map[string][]string{"east": {"10.1.0.1", "10.1.0.2"}, "west": {"10.1.128.1"}}, addresses(w.Of(cart)), "mended without a new record")
}

func TestOverlapsAreFoundWhateverTheirOrder(t *testing.T) {
	entry := func(name string, texts ...string) peer.Entry { return peer.Entry{Name: name, Ranges: ranges(texts...)} }
	found := peer.Overlaps([]peer.Entry{
		entry("e", "10.0.0.0/8"), entry("a", "10.5.0.0/16", "10.5.1.0/24"), entry("c", "10.5.1.0/24"),
		entry("x", "fd00::/48"), entry("y", "fd00::/64"), entry("z", "192.168.0.0/16", "10.9.0.0/16"), entry("free", "172.16.0.0/12"),
	})
	type pair struct {
		with    string
		blocked bool
	}
	got := map[string]pair{}
	for name, overlap := range found {
		got[name] = pair{overlap.With, overlap.Blocked}
	}
	assert.Equal(t, map[string]pair{
		"a": {"c", false}, "c": {"a", true}, "e": {"a", true}, "x": {"y", false}, "y": {"x", true}, "z": {"e", true},
	}, got)
}

func TestWithoutRangesNothingIsImported(t *testing.T) {
	w, east := honest(t)
	out := w.SetList([]peer.Entry{{Name: "here"}, east.entry()}, nil)
	assert.Equal(t, []peer.Reason{peer.NoRanges}, reasons(out))
	assert.Equal(t, []peer.Service{cart}, out.Changed)
	assert.Empty(t, w.Of(cart))
	assert.Equal(t, peer.NoRanges, w.view("east").Problem.Reason)
	assert.Empty(t, w.polls(time.Minute))
}
