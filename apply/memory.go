package apply

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// memory is what an engine remembers between passes. All of it can be lost:
// then each object is applied once more.
type memory struct {
	inventory Inventory // nil: to be read
	kinds     Kinds
	discovery rediscovery
	applied   map[ID]Applied
	retries   map[ID]Retry
	// born is that Service default/kubernetes was seen, unborn that it was
	// looked for at the last look and is not there.
	born, unborn bool
}

// Delays between tries of an object that was refused.
const (
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
)

func (m *memory) refuse(id ID, digest string, failure Failure, now time.Time) {
	attempts := 0
	if last, ok := m.retries[id]; ok && last.Digest == digest {
		attempts = last.Attempts
	}
	m.retries[id] = Retry{Digest: digest, Failure: failure, Attempts: attempts + 1, Next: now.Add(delay(firstRetry, lastRetry, attempts))}
}

// verifyEvery is the backstop behind the watches: each object is applied once
// more after it, or up to as long again, so that objects that were applied
// together are not verified together.
const verifyEvery = 6 * time.Hour

func (m *memory) accept(id ID, digest string, live Live, now time.Time) {
	delete(m.retries, id)
	m.applied[id] = Applied{Digest: digest, Fields: live.Fields, UID: live.UID, Verify: now.Add(verifyEvery + rand.N(verifyEvery))}
}

// retryNow lets all tries be due. Why something was refused is not forgotten:
// whoever owns an object is asked before it is written to again.
func (m *memory) retryNow() {
	for id, retry := range m.retries {
		retry.Attempts, retry.Next = 0, time.Time{}
		m.retries[id] = retry
	}
}

// needed are the kinds to watch: what is wanted or held, as far as it is served.
func (m *memory) needed(wanted Wanted) map[schema.GroupKind]Resource {
	needed := map[schema.GroupKind]Resource{}
	need := func(gk schema.GroupKind) {
		if _, known := needed[gk]; known {
			return
		}
		if resource, err := m.kinds.Any(gk); err == nil {
			needed[gk] = resource
		}
	}
	for o := range wanted.all() {
		need(o.GVK.GroupKind())
	}
	for _, set := range m.inventory {
		for id := range set {
			need(id.GroupKind())
		}
	}
	return needed
}

// delay doubles from first to last.
func delay(first, last time.Duration, attempts int) time.Duration {
	return min(first<<min(attempts, 16), last)
}

// prune forgets what no add-on has to do with any more: nothing is applied or
// deleted that the plan does not hold.
func (m *memory) prune(plan Plan) {
	known := make(map[ID]bool, len(m.applied))
	for _, addOn := range plan.AddOns {
		for id := range addOn.Hold {
			known[id] = true
		}
	}
	maps.DeleteFunc(m.applied, func(id ID, _ Applied) bool { return !known[id] })
	maps.DeleteFunc(m.retries, func(id ID, _ Retry) bool { return !known[id] })
}

// rediscovery decides when to ask the API server for its kinds again: when the
// definitions in sight change, and, paced, while a wanted kind is missing.
type rediscovery struct {
	definitions string
	attempts    int
	next        time.Time
	unserved    bool
}

// Delays between looks for a kind that is not served yet.
const (
	firstLook = time.Second
	lastLook  = 30 * time.Second
)

func (r *rediscovery) due(definitions string, now time.Time) bool {
	return r.next.IsZero() || r.definitions != definitions || (r.unserved && !now.Before(r.next))
}

func (r *rediscovery) done(definitions string, now time.Time) {
	if definitions != r.definitions {
		r.attempts = 0
	}
	r.definitions = definitions
	r.next = now.Add(delay(firstLook, lastLook, r.attempts))
	r.attempts++
}

// missing notes whether a kind is looked for. The next one that is missing is
// looked for without delay again.
func (r *rediscovery) missing(unserved bool) {
	r.unserved = unserved
	if !unserved {
		r.attempts = 0
	}
}

// definitionsOf prints the definitions in sight, each in its version.
func definitionsOf(live map[ID]*Live) string {
	lines := make([]string, 0, len(live))
	for id, l := range live {
		lines = append(lines, fmt.Sprintf("%s %s %d", id.Name, l.UID, l.Version))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
