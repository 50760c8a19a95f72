package peer

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/fleetling/fleetling/discovery/record"
)

// Entry is a cluster of the signed cluster list.
type Entry struct {
	Name string `json:"name"`
	// Keys are none, one or two lines "ssh-ed25519 AAAA...".
	Keys []string `json:"keys,omitempty"`
	// Ranges are the entry's pod CIDRs and its fleetling.dev/endpoint-cidrs:
	// where its endpoints may lie.
	Ranges []netip.Prefix `json:"ranges,omitempty"`
}

func compareEntries(a, b Entry) int { return strings.Compare(a.Name, b.Name) }

// Overlaps gives for every entry whose ranges overlap another's what is wrong.
// The one whose name sorts later is not imported (Blocked); both are named.
func Overlaps(entries []Entry) map[string]Overlap {
	type owned struct {
		netip.Prefix
		owner string
	}
	var all []owned
	for _, entry := range entries {
		for _, prefix := range entry.Ranges {
			all = append(all, owned{prefix.Masked(), entry.Name})
		}
	}
	slices.SortFunc(all, func(a, b owned) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()), strings.Compare(a.owner, b.owner))
	})
	// Of two ranges that overlap, one has the other in it: what is open is what
	// the next one lies in.
	found := map[string]Overlap{}
	var open []owned
	for _, next := range all {
		for len(open) > 0 && !open[len(open)-1].Overlaps(next.Prefix) {
			open = open[:len(open)-1]
		}
		for _, outer := range open {
			note(found, outer.owner, next.owner, next.Prefix)
		}
		open = append(open, next)
	}
	return found
}

// Overlap is one of an entry's overlaps.
type Overlap struct {
	// With is the entry that sorts first of those that overlap, and Range is in
	// both.
	With  string
	Range netip.Prefix
	// Blocked is that the entry is not imported: it sorts after With.
	Blocked bool
}

func note(found map[string]Overlap, a, b string, both netip.Prefix) {
	if a == b {
		return
	}
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		before, known := found[pair[0]]
		if !known || pair[1] < before.With {
			found[pair[0]] = Overlap{With: pair[1], Range: both, Blocked: pair[0] > pair[1]}
		}
	}
}

func (o Overlap) problem(name string) Problem {
	if o.Blocked {
		return problem(OverlappingRanges, "nothing of %s is imported: its range %s overlaps one of %s, which sorts before it: "+
			"give them ranges of their own in their cluster entries", name, o.Range, o.With)
	}
	return problem(OverlappingRanges, "range %s of %s overlaps one of %s, of which nothing is imported: "+
		"give them ranges of their own in their cluster entries", o.Range, name, o.With)
}

// fingerprints are those of the entry's keys that can be read.
func (e Entry) fingerprints() []string {
	var all []string
	for _, key := range e.Keys {
		if fingerprint, err := record.Fingerprint(key); err == nil {
			all = append(all, fingerprint)
		}
	}
	return all
}
