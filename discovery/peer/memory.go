package peer

import (
	"maps"

	"github.com/fleetling/fleetling/discovery"
)

// Memory is what has to survive a restart of the agent. It is plain data; its
// size is about 300 bytes per key and 150 per entry.
type Memory struct {
	// Marks are by the fingerprint of a member's key. None is ever dropped: keys
	// come from the signed list only, and one that comes back must not open the
	// door to its old records.
	Marks map[string]Mark `json:"marks,omitempty"`
	// Entries are the list that is in effect, sorted by name: what a commit that
	// comes while the agent is down is compared with.
	Entries []Entry `json:"entries,omitempty"`
	// Held are the names of those that are gone from the list and stay in effect
	// until that is acknowledged.
	Held []string `json:"held,omitempty"`
}

// Mark is the newest record of one key.
type Mark struct {
	Sequence uint64           `json:"sequence"`
	Payload  discovery.Digest `json:"payload"`
	Content  discovery.Digest `json:"content"`
	// Late is that the member's endpoints have been not ready since: a restart
	// doesn't make a dead cluster's endpoints ready again.
	Late bool `json:"late,omitempty"`
}

// Memory gives a copy of what has to be kept.
func (p *Peers) Memory() Memory {
	return Memory{
		Marks:   maps.Clone(p.marks),
		Entries: p.list(),
		Held:    p.Held(),
	}
}

// Revision changes when Memory has to be written: with a record of new content, a
// peer whose endpoints became not ready or ready again, or another list; not with
// a renewal. A mark that is some renewals old lets somebody replay only records
// that say the same.
func (p *Peers) Revision() uint64 { return p.revision }

// remember takes the record of a claim as the newest of its key.
func (p *Peers) remember(key string, mark Mark) {
	before := p.marks[key]
	p.marks[key] = mark
	if before.Content != mark.Content || before.Late != mark.Late {
		p.revision++
	}
}
