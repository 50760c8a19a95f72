package apply

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// memory is what an engine remembers between passes. All of it can be lost:
// then each object is applied once more.
type memory struct {
	inventory Inventory // nil: to be read
	kinds     Kinds
	discovery rediscovery
	applied   map[ID]Applied
	retries   map[ID]Retry
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

func (m *memory) accept(id ID, digest string, live Live) {
	delete(m.retries, id)
	m.applied[id] = Applied{Digest: digest, Fields: live.Fields, Live: live}
}

// delay doubles from first to last.
func delay(first, last time.Duration, attempts int) time.Duration {
	return min(first<<min(attempts, 16), last)
}

// prune forgets what no add-on has to do with any more.
func (m *memory) prune(plan Plan) {
	known := map[ID]bool{}
	for _, addOn := range plan.AddOns {
		for id := range addOn.Wanted {
			known[id] = true
		}
		for id := range addOn.Hold {
			known[id] = true
		}
	}
	for id := range m.applied {
		if !known[id] {
			delete(m.applied, id)
		}
	}
	for id := range m.retries {
		if !known[id] {
			delete(m.retries, id)
		}
	}
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
	lastLook  = 2 * time.Minute
)

func (r *rediscovery) due(live map[ID]Live, now time.Time) bool {
	return r.next.IsZero() || r.definitions != definitionsOf(live) || (r.unserved && !now.Before(r.next))
}

func (r *rediscovery) done(live map[ID]Live, now time.Time) {
	definitions := definitionsOf(live)
	if definitions != r.definitions {
		r.attempts = 0
	}
	r.definitions = definitions
	r.next = now.Add(delay(firstLook, lastLook, r.attempts))
	r.attempts++
}

// definitionsOf prints the definitions in sight, each in its version.
func definitionsOf(live map[ID]Live) string {
	var lines []string
	for id, l := range live {
		if id.GroupKind().String() == kindDefinition {
			lines = append(lines, fmt.Sprintf("%s %s %d", id.Name, l.UID, l.Version))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
