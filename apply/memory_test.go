package apply

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func newMemory() *memory { return &memory{applied: map[ID]Applied{}, retries: map[ID]Retry{}} }

func TestTriesOfARefusedObjectAreFurtherAndFurtherApart(t *testing.T) {
	m, id := newMemory(), viewID
	var got []time.Duration
	for range 9 {
		m.refuse(id, "digest", Failure{Message: "no"}, planNow)
		got = append(got, m.retries[id].Next.Sub(planNow))
	}
	assert.Equal(t, []time.Duration{
		5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second,
		5 * time.Minute, 5 * time.Minute, 5 * time.Minute,
	}, got)
	assert.Equal(t, "no", m.retries[id].Failure.Message)
	m.refuse(id, "another", Failure{}, planNow)
	assert.Equal(t, 1, m.retries[id].Attempts, "another content begins anew")
	m.refuse(id, "", Failure{}, planNow)
	assert.Equal(t, 1, m.retries[id].Attempts, "a delete does too")
	m.accept(id, "digest", Live{UID: "u", Fields: "f"}, planNow)
	assert.Empty(t, m.retries)
	applied := m.applied[id]
	assert.WithinRange(t, applied.Verify, planNow.Add(verifyEvery), planNow.Add(2*verifyEvery))
	applied.Verify = time.Time{}
	assert.Equal(t, Applied{Digest: "digest", UID: "u", Fields: "f"}, applied)
}

func TestADelayNeverOverflows(t *testing.T) {
	for attempts := range 200 {
		d := delay(firstRetry, lastRetry, attempts)
		assert.True(t, d >= firstRetry && d <= lastRetry, "%d: %s", attempts, d)
	}
}

func TestRetryNowForgetsWhenAndNotWhy(t *testing.T) {
	m := newMemory()
	m.refuse(viewID, "digest", Failure{Reason: OwnedByOther}, planNow)
	m.retryNow()
	assert.Equal(t, map[ID]Retry{viewID: {Digest: "digest", Failure: Failure{Reason: OwnedByOther}}}, m.retries)
}

func TestMemoryKeepsWhatThePlanHolds(t *testing.T) {
	m := newMemory()
	gone := ID{Kind: "ConfigMap", Namespace: "web", Name: "gone"}
	for _, id := range []ID{viewID, gone} {
		m.accept(id, "digest", Live{}, planNow)
		m.refuse(id, "digest", Failure{}, planNow)
	}
	m.prune(Plan{AddOns: []AddOnPlan{{Hold: Set{}}, {Hold: Set{viewID: Intended}}}})
	assert.Len(t, m.applied, 1)
	assert.Len(t, m.retries, 1)
	assert.Contains(t, m.applied, viewID)
	assert.Contains(t, m.retries, viewID)
}

func TestKindsAreAskedForWhenTheyMayHaveChanged(t *testing.T) {
	one := definitionsOf(map[ID]*Live{{Kind: "CustomResourceDefinition", Name: "w"}: {UID: "u", Version: 1}})
	var r rediscovery
	assert.True(t, r.due("", planNow), "at the start")
	r.done("", planNow)
	r.missing(false)
	assert.False(t, r.due("", planNow.Add(24*time.Hour)), "no news, nothing missing")
	assert.True(t, r.due(one, planNow), "a definition came")
	r.done(one, planNow)
	two := definitionsOf(map[ID]*Live{{Kind: "CustomResourceDefinition", Name: "w"}: {UID: "u", Version: 2}})
	assert.True(t, r.due(two, planNow), "a definition changed")
	r.done(two, planNow)

	// A kind is missing: looked for at growing distances.
	now := planNow
	var got []time.Duration
	for range 9 {
		r.missing(true)
		assert.False(t, r.due(two, r.next.Add(-1)))
		assert.True(t, r.due(two, r.next))
		got = append(got, r.next.Sub(now))
		now = r.next
		r.done(two, now)
	}
	assert.Equal(t, []time.Duration{
		time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, lastLook, lastLook, lastLook, lastLook,
	}, got)
	// It is found, and much later another one is missing.
	r.missing(false)
	now = now.Add(24 * time.Hour)
	r.missing(true)
	assert.True(t, r.due(two, now))
	r.done(two, now)
	assert.Equal(t, firstLook, r.next.Sub(now), "without the patience for the first one")
}

func TestDefinitionsAreTheSameInAnyOrder(t *testing.T) {
	live := map[ID]*Live{}
	for _, name := range []string{"a", "b", "c", "d"} {
		live[ID{Kind: "CustomResourceDefinition", Name: name}] = &Live{UID: "u", Version: 1}
	}
	want := definitionsOf(live)
	for range 20 {
		assert.Equal(t, want, definitionsOf(live))
	}
}
