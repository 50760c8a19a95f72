package peer

import (
	"time"

	"github.com/fleetling/fleetling/discovery/record"
)

// rival is another cluster that puts records under our name.
type rival struct {
	uid      string
	sequence uint64
	// until is when it may be taken for gone.
	until time.Time
}

// TakeOwn looks at what the carrier has under our name. It is to be called before
// the first record is put, and whenever the head is not the one that was put
// last. It gives the sequence number for record.NextSequence, and a problem while
// another cluster (DuplicateIdentity) uses our name: then nothing may be put,
// until it has put nothing new for a lease. Bytes that none of our keys has signed
// are nobody's: they are overwritten.
func (p *Peers) TakeOwn(sealed []byte, now time.Time) (sequence uint64, found Problem) {
	own, err := p.openOwn(sealed)
	if err != nil || own.Cluster != p.self.Name || own.ClusterSet != p.self.ClusterSet {
		return 0, Problem{}
	}
	if own.ClusterUID == p.self.UID || own.Withdrawn {
		return own.Sequence, Problem{}
	}
	if own.ClusterUID != p.rival.uid || own.Sequence > p.rival.sequence {
		p.rival = rival{own.ClusterUID, own.Sequence, now.Add(p.timing.leaseOf(own.LeaseSeconds))}
	}
	if !now.Before(p.rival.until) {
		return own.Sequence, Problem{}
	}
	return own.Sequence, problem(DuplicateIdentity, "another cluster (kube-system %s, ours is %s) puts records as %s: nothing is published until one of them has another identity",
		own.ClusterUID, p.self.UID, p.self.Name)
}

func (p *Peers) openOwn(sealed []byte) (record.Record, error) {
	payload, _, err := record.Open(record.KindRecord, sealed, p.entries[p.self.Name].Keys)
	if err != nil {
		// The entry may lack our key still.
		payload, _, err = record.Open(record.KindRecord, sealed, []string{p.self.Key})
	}
	if err != nil {
		return record.Record{}, err
	}
	return record.DecodeRecord(payload)
}
