package peer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fleetling/fleetling/discovery"
)

// RemovalDigest is what acknowledges that these clusters are gone from the list.
// It can be computed from Git, and is the same in every cluster.
func RemovalDigest(names []string) discovery.Digest {
	return discovery.DigestOf([]byte(strings.Join(slices.Sorted(slices.Values(names)), "\n")))
}

// IsHeld is whether so many gone at once have to be acknowledged: more than a
// third.
func IsHeld(gone, before int) bool { return 3*gone > before }

// Held are the names of the clusters that are gone from the list and still in
// effect, sorted. RemovalDigest of them, acknowledged, releases them.
func (p *Peers) Held() []string { return slices.Sorted(maps.Keys(p.held)) }

// SetList sets the cluster list of a verified commit, with our own entry in it,
// and what that commit acknowledges. Who is gone is withdrawn at once, except
// where it is more than a third of the list: these stay in effect, as they were,
// until acknowledged or back; all else of the list goes on.
func (p *Peers) SetList(entries []Entry, acknowledged []discovery.Digest) Outcome {
	var out Outcome
	entriesBefore, heldBefore := p.list(), p.Held()
	now := map[string]Entry{}
	for _, entry := range entries {
		now[entry.Name] = entry
		delete(p.held, entry.Name)
	}
	p.leave(now, &out)
	if len(p.held) > 0 && slices.Contains(acknowledged, RemovalDigest(p.Held())) {
		p.release(&out)
	}
	maps.Copy(p.entries, now)
	p.dropUnlisted(&out)
	p.renew(&out)
	p.dropKeyless(&out)
	if !slices.EqualFunc(entriesBefore, p.list(), equalEntries) || !slices.Equal(heldBefore, p.Held()) {
		p.revision++
	}
	return out
}

// list are the entries in effect, sorted by name.
func (p *Peers) list() []Entry { return slices.SortedFunc(maps.Values(p.entries), compareEntries) }

func equalEntries(a, b Entry) bool {
	return a.Name == b.Name && slices.Equal(a.Keys, b.Keys) && slices.Equal(a.Ranges, b.Ranges)
}

// leave takes those that are not in the new list out of effect, or holds them.
func (p *Peers) leave(now map[string]Entry, out *Outcome) {
	var gone []string
	for name := range p.entries {
		_, listed := now[name]
		_, held := p.held[name]
		if !listed && !held {
			gone = append(gone, name)
		}
	}
	if !IsHeld(len(gone), len(p.entries)-len(p.held)) {
		for _, name := range gone {
			delete(p.entries, name)
		}
		return
	}
	for _, name := range gone {
		p.held[name] = struct{}{}
	}
	all := p.Held()
	out.tell(Event{Reason: RemovalHeld, Warning: true, Message: problem(RemovalHeld,
		"%d clusters are gone from the list, more than a third of it, and stay in effect: to remove them acknowledge %s (%s)",
		len(all), RemovalDigest(all), firstOf(all)).Message})
}

func (p *Peers) release(out *Outcome) {
	out.tell(normal("", RemovalReleased, "the removal of %d clusters is acknowledged (%s)", len(p.held), firstOf(p.Held())))
	for name := range p.held {
		delete(p.entries, name)
	}
	clear(p.held)
}

// firstOf keeps a message short.
func firstOf(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

func (p *Peers) dropUnlisted(out *Outcome) {
	for _, name := range sortedKeys(p.members) {
		if _, listed := p.entries[name]; listed {
			continue
		}
		p.drop(p.members[name], out)
		delete(p.members, name)
		out.tell(normal(name, LeftClusterList, "%s is gone from the cluster list: all of it is removed", name))
	}
}

// dropKeyless drops what was signed by a key that the entry has no longer: a
// restart would not take it either, and that is how a stolen key is revoked.
func (p *Peers) dropKeyless(out *Outcome) {
	for _, name := range sortedKeys(p.members) {
		m := p.members[name]
		if m.key == "" || slices.Contains(m.entry.fingerprints(), m.key) {
			continue
		}
		out.tell(warning(name, problem(KeyRemoved, "key %s is gone from the entry of %s: what it has signed is removed", m.key, name)))
		p.drop(m, out)
		m.state = Withdrawn
	}
}

// renew brings the members in line with the entries in effect.
func (p *Peers) renew(out *Outcome) {
	p.listed = true
	overlaps := Overlaps(slices.Collect(maps.Values(p.entries)))
	for _, name := range sortedKeys(p.entries) {
		if name == p.self.Name {
			continue
		}
		m := p.members[name]
		if m == nil {
			m = &member{exports: map[Service]*export{}, life: life{state: Unknown}}
			p.members[name] = m
		}
		if !slices.Equal(m.entry.Keys, p.entries[name].Keys) {
			// What the former keys did not open, the new ones may.
			m.refused, m.problem = "", Problem{}
		}
		before, blocked := m.entry, m.blocked
		m.entry = p.entries[name]
		out.tell(m.block(overlaps)...)
		if !slices.Equal(before.Ranges, m.entry.Ranges) || blocked != m.blocked {
			out.change(slices.Collect(maps.Keys(m.exports))...)
		}
	}
}

// block works out whether anything of the peer may be imported.
func (m *member) block(overlaps map[string]Overlap) []Event {
	before := cmp.Or(m.blocked, m.overlap)
	m.blocked, m.overlap = Problem{}, Problem{}
	overlap, overlapping := overlaps[m.entry.Name]
	switch {
	case len(m.entry.Ranges) == 0:
		m.blocked = problem(NoRanges, "the cluster entry of %s has neither pod CIDRs nor fleetling.dev/endpoint-cidrs: nothing of it is imported", m.entry.Name)
	case overlapping && overlap.Blocked:
		m.blocked = overlap.problem(m.entry.Name)
	case overlapping:
		m.overlap = overlap.problem(m.entry.Name)
	}
	after := cmp.Or(m.blocked, m.overlap)
	switch {
	case after == before:
		return nil
	case after.Reason == "":
		return []Event{normal(m.entry.Name, ProblemResolved, "%s is over", before.Reason)}
	}
	return []Event{warning(m.entry.Name, after)}
}
