package peer

import "time"

// Timing is the rhythm of a carrier.
type Timing struct {
	// Poll is how often a member asks the carrier: for all heads where it has to
	// poll, for its own record where the carrier tells of changes by itself.
	Poll time.Duration
	// Renew is how often a member puts a new record when nothing has changed.
	Renew time.Duration
	// Lease is how long a record is taken for fresh.
	Lease time.Duration
	// Grace is how long a Late peer's endpoints stay as they are.
	Grace time.Duration
}

// GitTiming is for the git carrier: a renewal is a push.
func GitTiming() Timing {
	return Timing{Poll: 5 * time.Second, Renew: time.Minute, Lease: 3 * time.Minute, Grace: 30 * time.Second}
}

// NATSTiming is for the NATS carrier: a renewal is one small message. Poll is
// only that of the own record.
func NATSTiming() Timing {
	return Timing{Poll: 2 * time.Second, Renew: 10 * time.Second, Lease: 30 * time.Second, Grace: 10 * time.Second}
}

// Failover is the longest time from when a cluster is gone, with all that runs in
// it, until the others have been told to take its endpoints for not ready: its
// last record may be taken a poll late, lease and grace run, and what they end in
// is seen at the next poll each. 3m45s with git, 46s with NATS. It does not hold
// while this cluster is not connected.
func (t Timing) Failover() time.Duration { return t.Lease + t.Grace + 3*t.Poll }

// Return is the shortest time from when a Late peer puts records again until it
// is Fresh: two records that are half a renewal apart. 30 s with git, 5 s with
// NATS.
func (t Timing) Return() time.Duration { return t.Renew / 2 }

// silence is how long the own record may not be seen in the carrier before this
// cluster counts as disconnected. It is longer than it takes for a renewal to
// appear, and shorter than a lease less a renewal: so it ends before a lease
// that began to run out with the same break.
func (t Timing) silence() time.Duration { return t.Lease / 3 }

// leaseOf bounds what a record asks for. Shorter than ours would make a cluster
// Late between two renewals, longer would let it be dead and trusted.
func (t Timing) leaseOf(seconds int) time.Duration {
	return min(max(time.Duration(seconds)*time.Second, t.Lease), 4*t.Lease)
}
