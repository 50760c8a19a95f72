package carriertest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery"
)

func testEmpty(t *testing.T, r Registry) {
	t.Helper()
	listed(t, r.Open("alice"))
}

func testPut(t *testing.T, r Registry) {
	t.Helper()
	alice, bob := r.Open("alice"), r.Open("bob")
	a := own("alice", 1, 3)
	put(t, alice, a)
	for _, c := range []discovery.Carrier{alice, bob} {
		listed(t, c, headOf("alice", a))
		holds(t, c, "alice", a)
	}
}

func testReplace(t *testing.T, r Registry) {
	t.Helper()
	alice, bob := r.Open("alice"), r.Open("bob")
	b := own("bob", 1, 2)
	put(t, bob, b)
	for version := range 3 {
		a := own("alice", version, 2)
		put(t, alice, a)
		for _, c := range []discovery.Carrier{alice, bob} {
			listed(t, c, headOf("alice", a), headOf("bob", b))
			holds(t, c, "alice", a)
			holds(t, c, "bob", b)
		}
	}
}

func testTakeOut(t *testing.T, r Registry) {
	t.Helper()
	alice, bob := r.Open("alice"), r.Open("bob")
	a := own("alice", 1, 1)
	put(t, alice, a)
	listed(t, bob, headOf("alice", a))
	status := discovery.Own{Status: a.Status}
	put(t, alice, status)
	listed(t, bob, headOf("alice", status))
	absent(t, bob, "alice", discovery.DigestOf(a.Record))
	record := discovery.Own{Record: a.Record}
	put(t, alice, record)
	listed(t, bob, headOf("alice", record))
	holds(t, bob, "alice", record)
}

func testParts(t *testing.T, r Registry) {
	t.Helper()
	alice, bob := r.Open("alice"), r.Open("bob")
	first, second := own("alice", 1, 3), own("alice", 2, 1)
	put(t, alice, first)
	listed(t, bob, headOf("alice", first))
	var kept discovery.Digest
	for digest, part := range first.Parts { // one of the old stays
		second.Parts[digest], kept = part, digest
		break
	}
	put(t, alice, second)
	listed(t, bob, headOf("alice", second))
	holds(t, bob, "alice", second)
	for digest := range first.Parts {
		if digest != kept {
			absent(t, bob, "alice", digest)
		}
	}
}

func testUnchanged(t *testing.T, r Registry) {
	t.Helper()
	alice := r.Open("alice")
	a := own("alice", 1, 3)
	put(t, alice, a)
	listed(t, alice, headOf("alice", a))
	writesNothing(t, r, func() { put(t, alice, a) })
	holds(t, alice, "alice", a)
}

func testRestart(t *testing.T, r Registry) {
	t.Helper()
	a := own("alice", 1, 3)
	put(t, r.Open("alice"), a)
	listed(t, r.Open("bob"), headOf("alice", a))
	again := r.Open("alice")
	writesNothing(t, r, func() { put(t, again, a) })
}

func writesNothing(t *testing.T, r Registry, do func()) {
	t.Helper()
	if r.Writes == nil {
		do()
		return
	}
	before := r.Writes()
	require.Positive(t, before, "a counter that counts nothing proves nothing")
	do()
	assert.Equal(t, before, r.Writes())
}

func testOrder(t *testing.T, r Registry) {
	t.Helper()
	var want []discovery.Head
	for _, name := range []string{"b", "a-b", "c", "a", "ab", "b1"} {
		o := own(name, 1, 0)
		put(t, r.Open(name), o)
		want = append(want, headOf(name, o))
	}
	slices.SortFunc(want, func(a, b discovery.Head) int { return bytes.Compare([]byte(a.Member), []byte(b.Member)) })
	listed(t, r.Open("reader"), want...)
}

func testNotFound(t *testing.T, r Registry) {
	t.Helper()
	alice := r.Open("alice")
	put(t, alice, own("alice", 1, 1))
	absent(t, alice, "alice", discovery.DigestOf([]byte("never put")))
	absent(t, alice, "nobody", discovery.DigestOf([]byte("never put")))
}

func testOthers(t *testing.T, r Registry) {
	t.Helper()
	alice, bob := r.Open("alice"), r.Open("bob")
	a, b := own("alice", 1, 1), own("bob", 1, 1)
	put(t, alice, a)
	put(t, bob, b)
	listed(t, alice, headOf("alice", a), headOf("bob", b))
	absent(t, alice, "bob", discovery.DigestOf(a.Record))
	for digest := range a.Parts {
		absent(t, alice, "bob", digest)
	}
}

func testNames(t *testing.T, r Registry) {
	t.Helper()
	alice := r.Open("alice")
	a := own("alice", 1, 1)
	put(t, alice, a)
	listed(t, alice, headOf("alice", a))
	digest := discovery.DigestOf(a.Record)
	for _, member := range []string{"", "*", ">", ".", "..", "../alice", "alice/../alice", "alice.record", "Alice", "ali ce", "alice\n"} {
		absent(t, alice, member, digest)
	}
	for _, digest := range []discovery.Digest{"", "*", "sha256:", "sha256:*", "record", "../record", digest[:len(digest)-1], digest + "0"} {
		absent(t, alice, "alice", digest)
	}
}

func testSize(t *testing.T, r Registry) {
	t.Helper()
	alice, bob := r.Open("alice"), r.Open("bob")
	a := own("alice", 1, 100)
	a.Record = bytes.Repeat([]byte("0123456789abcdef"), 256<<10/16)
	large := bytes.Repeat([]byte{0, 1, 2, 0xff}, 256<<10/4)
	a.Parts[discovery.DigestOf(large)] = large
	put(t, alice, a)
	listed(t, bob, headOf("alice", a))
	holds(t, bob, "alice", a)
}

func testWrongPart(t *testing.T, r Registry) {
	t.Helper()
	alice := r.Open("alice")
	good := own("alice", 1, 1)
	put(t, alice, good)
	for name, parts := range map[string]map[discovery.Digest][]byte{
		"of other bytes": {discovery.DigestOf([]byte("x")): []byte("y")},
		"that is none":   {"sha256:../../record": []byte("y")},
	} {
		bad := own("alice", 2, 0)
		bad.Parts = parts
		assert.Error(t, alice.Put(t.Context(), bad), name)
		listed(t, r.Open("bob"), headOf("alice", good))
	}
}

func testConcurrent(t *testing.T, r Registry) {
	t.Helper()
	var all sync.WaitGroup
	var want []discovery.Head
	last := map[string]discovery.Own{}
	for _, name := range []string{"alice", "bob", "carol"} {
		c := r.Open(name)
		last[name] = own(name, 3, 2)
		want = append(want, headOf(name, last[name]))
		all.Go(func() {
			for version := range 4 {
				assert.NoError(t, c.Put(t.Context(), own(name, version, 2)))
			}
		})
		all.Go(func() {
			_, err := c.Heads(t.Context())
			assert.NoError(t, err)
		})
	}
	all.Wait()
	reader := r.Open("reader")
	listed(t, reader, want...)
	for name, o := range last {
		holds(t, reader, name, o)
	}
}

func testContext(t *testing.T, r Registry) {
	t.Helper()
	alice := r.Open("alice")
	a := own("alice", 1, 1)
	put(t, alice, a)
	listed(t, alice, headOf("alice", a))
	ended, end := context.WithCancel(t.Context())
	end()
	heads, err := alice.Heads(ended)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Nil(t, heads)
	_, err = alice.Get(ended, "alice", discovery.DigestOf(a.Record))
	assert.ErrorIs(t, err, context.Canceled)
	assert.NotErrorIs(t, err, discovery.ErrNotFound)
	assert.ErrorIs(t, alice.Put(ended, own("alice", 2, 1)), context.Canceled)
	listed(t, alice, headOf("alice", a))
}

func testWatch(t *testing.T, r Registry) {
	t.Helper()
	bob := r.Open("bob")
	watcher, ok := bob.(discovery.Watcher)
	if !ok {
		return // it is polled
	}
	alice, carol := r.Open("alice"), r.Open("carol")
	before := own("carol", 1, 1)
	put(t, carol, before)
	seen := watch(t, watcher)
	seen.wait(t, headOf("carol", before))
	for version := range 5 {
		a := own("alice", version, 1)
		put(t, alice, a)
		seen.wait(t, headOf("alice", a))
		holds(t, bob, "alice", a)
	}
	status := own("alice", 4, 1)
	status.Status = fmt.Append(nil, "another status")
	put(t, alice, status)
	seen.wait(t, headOf("alice", status))
}

func testWatchEnds(t *testing.T, r Registry) {
	t.Helper()
	watcher, ok := r.Open("bob").(discovery.Watcher)
	if !ok {
		return // it is polled
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watcher.Watch(ctx, func(discovery.Head) {}) }()
	end()
	assert.ErrorIs(t, <-ended, context.Canceled)
}
