package peer

import (
	"errors"
	"time"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/record"
)

// claim is a record that is being judged; the checks fill it in, in their order.
type claim struct {
	member *member
	sealed []byte
	now    time.Time

	payload []byte
	digest  discovery.Digest
	key     string
	record  record.Record
}

// judge gives the first thing that is wrong.
func (p *Peers) judge(c *claim) Problem {
	for _, check := range []func(*claim) Problem{
		checkKeys, checkSignature, checkPayload, p.checkClusterSet, checkName, p.checkSequence, checkIdentity,
	} {
		if wrong := check(c); wrong.Reason != "" {
			return wrong
		}
	}
	return Problem{}
}

func checkKeys(c *claim) Problem {
	if len(c.member.entry.Keys) > 0 {
		return Problem{}
	}
	return problem(NoKeys, "the cluster entry of %s has no member key: add the annotation that member/self shows there", c.member.entry.Name)
}

func checkSignature(c *claim) Problem {
	payload, key, err := record.Open(record.KindRecord, c.sealed, c.member.entry.Keys)
	if err != nil {
		return problem(reasonOf(err), "record of %s: %v", c.member.entry.Name, err)
	}
	c.payload, c.key, c.digest = payload, key, discovery.DigestOf(payload)
	return Problem{}
}

func checkPayload(c *claim) Problem {
	decoded, err := record.DecodeRecord(c.payload)
	if err != nil {
		return problem(reasonOf(err), "%s has signed a record that can't be taken: %v", c.member.entry.Name, err)
	}
	c.record = decoded
	return Problem{}
}

func (p *Peers) checkClusterSet(c *claim) Problem {
	if c.record.ClusterSet == p.self.ClusterSet {
		return Problem{}
	}
	return problem(WrongClusterSet, "%s has signed a record for ClusterSet %s, this one is %s: look at its identity and its registry",
		c.member.entry.Name, c.record.ClusterSet, p.self.ClusterSet)
}

func checkName(c *claim) Problem {
	if c.record.Cluster == c.member.entry.Name {
		return Problem{}
	}
	return problem(WrongName, "what the registry has for %s is signed for cluster %s: either its identity is wrong or somebody moved it",
		c.member.entry.Name, c.record.Cluster)
}

// checkSequence looks at all keys of the entry: the last record of the key before
// the rotation must not come back either. An equal number is good where it is the
// record that the mark is of (a restart), and taken a second time it is nothing
// new.
func (p *Peers) checkSequence(c *claim) Problem {
	for _, key := range c.member.entry.fingerprints() {
		mark := p.marks[key]
		switch {
		case c.record.Sequence < mark.Sequence:
			return problem(Replayed, "the registry has record %d of %s, and record %d was taken before: it shows an old one, or %s has lost its clock and its registry entry",
				c.record.Sequence, c.member.entry.Name, mark.Sequence, c.member.entry.Name)
		case c.record.Sequence == mark.Sequence && c.digest != mark.Payload:
			return problem(Equivocation, "%s has signed two different records with number %d, the first (%s) is kept: two clusters use its key, or it was stolen",
				c.member.entry.Name, mark.Sequence, mark.Payload)
		}
	}
	return Problem{}
}

func checkIdentity(c *claim) Problem {
	m := c.member
	if m.state == Unknown || m.state == Withdrawn || m.uid == c.record.ClusterUID || !c.now.Before(m.taken.Add(m.lease)) {
		return Problem{}
	}
	return problem(DuplicateIdentity, "two clusters call themselves %s: kube-system %s is the one known, %s the newcomer: give one of them another identity",
		m.entry.Name, m.uid, c.record.ClusterUID)
}

func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, record.ErrTooLarge):
		return TooLarge
	case errors.Is(err, record.ErrUnknownKey):
		return UnknownKey
	case errors.Is(err, record.ErrSignature):
		return BadSignature
	case errors.Is(err, record.ErrSchema):
		return UnknownSchema
	default:
		return Malformed
	}
}
