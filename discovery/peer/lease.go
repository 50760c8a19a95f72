package peer

import (
	"time"

	"github.com/fleetling/fleetling/discovery"
)

// State is how far a peer is believed.
type State string

// The states of a peer.
const (
	// Unknown is that no record of it has been taken since this agent started:
	// what is here of it stays as it is.
	Unknown State = "Unknown"
	// Fresh is that its lease runs.
	Fresh State = "Fresh"
	// Late is that its lease ran out while we were connected, or that it is on its
	// way back.
	Late State = "Late"
	// Withdrawn is that it has signed that it left.
	Withdrawn State = "Withdrawn"
)

// life is the state of a peer and what it depends on. All times are the reader's.
type life struct {
	state State
	// taken is when the last new record was taken, or when its lease began anew.
	taken time.Time
	lease time.Duration
	// late is when the grace time began.
	late time.Time
	// back is when the first record of a Late peer was taken; zero is that none
	// was.
	back time.Time
	// notReady is that grace is over, and the peer not Fresh since.
	notReady bool
}

// connection is whether our latest record can be read back.
type connection struct {
	published discovery.Digest
	up        bool
	// seen is when it was read back last.
	seen time.Time
}

// Published tells of the sealed record that was put last, or tried to be.
func (p *Peers) Published(sealed discovery.Digest) { p.connection.published = sealed }

// Connected is whether our latest record could be read back lately.
func (p *Peers) Connected() bool { return p.connection.up }

// Contact is to be called at the end of each round, when the new records have been
// taken. listed is what the carrier says our record is, empty where it does not
// answer. Leases and grace times end only here, and only by a round in which our
// latest record was read back: a carrier that would show us ours would show us
// theirs.
func (p *Peers) Contact(listed discovery.Digest, now time.Time) Outcome {
	var out Outcome
	c := &p.connection
	silent := !c.up || now.Sub(c.seen) > p.timing.silence()
	if listed == "" || listed != c.published {
		p.disconnect(silent, &out)
		return out
	}
	c.seen = now
	if silent {
		// Also where a disconnection was never noticed, because nobody called.
		p.reconnect(now, &out)
		return out
	}
	for _, name := range sortedKeys(p.members) {
		p.age(p.members[name], now, &out)
	}
	return out
}

func (p *Peers) disconnect(silent bool, out *Outcome) {
	if p.connection.up && silent {
		p.connection.up = false
		out.tell(Event{Reason: Disconnected, Warning: true, Message: "our own record can't be read back from the registry: " +
			"what is known of the peers stays as it is, whatever becomes of them"})
	}
}

// reconnect lets all leases and grace times begin anew: the peers were as cut off
// from us as we were from them.
func (p *Peers) reconnect(now time.Time, out *Outcome) {
	p.connection.up = true
	out.tell(normal("", Connected, "our own record can be read back from the registry"))
	for _, m := range p.members {
		m.taken, m.late = now, now
	}
}

// age lets the time take its course with one peer, while we are connected.
func (p *Peers) age(m *member, now time.Time, out *Outcome) {
	over := now.Sub(m.taken) >= m.lease
	switch {
	case m.state == Fresh && over:
		m.state, m.late, m.back = Late, now, time.Time{}
		out.tell(warning(m.entry.Name, problem(BecameLate, "%s has put no new record for %s, while the registry could be read: "+
			"its endpoints become not ready in %s unless it comes back", m.entry.Name, m.lease, p.timing.Grace)))
	case m.state != Late:
		return
	case !m.back.IsZero() && over:
		m.late, m.back = now, time.Time{}
	case m.back.IsZero() && !m.notReady && now.Sub(m.late) >= p.timing.Grace:
		p.setReady(m, false, out)
		out.tell(warning(m.entry.Name, problem(EndpointsLate, "%s is still late: its endpoints are not ready, where a service has others", m.entry.Name)))
	}
}

// renewed is that a new record was taken.
func (p *Peers) renewed(m *member, c *claim, out *Outcome) {
	before := m.life
	m.taken, m.lease = c.now, p.timing.leaseOf(c.record.LeaseSeconds)
	mark := p.marks[c.key]
	switch {
	case c.record.Withdrawn:
		m.state, m.notReady, m.back = Withdrawn, false, time.Time{}
	case before.state == Unknown && mark.Late:
		m.state, m.late, m.notReady = Late, c.now, true
		if c.record.Sequence > mark.Sequence {
			m.back = c.now
		}
	case before.state == Late && before.back.IsZero():
		m.back = c.now
	case before.state == Late && c.now.Sub(before.back) < p.timing.Return():
	default:
		m.state, m.back = Fresh, time.Time{}
		p.setReady(m, true, out)
	}
	p.tellOf(m, before.state, out)
}

func (p *Peers) tellOf(m *member, before State, out *Outcome) {
	if m.state == before {
		return
	}
	switch m.state {
	case Unknown:
		// No record leads there.
	case Withdrawn:
		out.tell(normal(m.entry.Name, BecameWithdrawn, "%s has signed that it left: all of it is removed", m.entry.Name))
	case Fresh:
		out.tell(normal(m.entry.Name, BecameFresh, "%s puts records", m.entry.Name))
	case Late:
		out.tell(warning(m.entry.Name, problem(BecameLate, "%s was late before this agent started: its endpoints stay not ready until it puts records again", m.entry.Name)))
	}
}

func (p *Peers) setReady(m *member, ready bool, out *Outcome) {
	if m.notReady == !ready {
		return
	}
	m.notReady = !ready
	if mark, known := p.marks[m.key]; known {
		mark.Late = m.notReady
		p.remember(m.key, mark)
	}
	for service := range m.exports {
		out.change(service)
	}
}
