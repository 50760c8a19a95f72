package record

import "time"

// NextSequence gives the number of the next record of this member: higher than
// its last one (which it may have lost), than its own record in the carrier
// (which may be hidden) and, where both are gone, by the clock. It ends at
// MaxSequence, where a new key is needed.
func NextSequence(last, inCarrier uint64, now time.Time) uint64 {
	return min(max(min(last, MaxSequence)+1, min(inCarrier, MaxSequence)+1, uint64(max(now.UnixMilli(), 1))), MaxSequence)
}
