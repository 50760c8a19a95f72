package mcs

import (
	"slices"

	"github.com/fleetling/fleetling/discovery/record"
)

// way is how a client comes to an endpoint: over one family, to one port.
type way struct{ family, port string }

// ways are those that a slice offers; one without a name where it has no ports.
func ways(s record.Slice) []way {
	if len(s.Ports) == 0 {
		return []way{{family: s.AddressType}}
	}
	all := make([]way, len(s.Ports))
	for i, p := range s.Ports {
		all[i] = way{s.AddressType, p.Name}
	}
	return all
}

// retire makes the endpoints of the late ones not ready, where others are ready
// on every way that they offer. The last ready endpoints of a way stay: a member
// that is not heard of may well be serving.
func retire(imported []ImportedSlice, late []int) {
	if len(late) == 0 {
		return
	}
	open := map[way]bool{}
	for i, s := range imported {
		if _, isLate := slices.BinarySearch(late, i); isLate || !anyReady(s.Slice) {
			continue
		}
		for _, w := range ways(s.Slice) {
			open[w] = true
		}
	}
	for _, i := range late {
		slice := &imported[i].Slice
		if slices.ContainsFunc(ways(*slice), func(w way) bool { return !open[w] }) {
			continue
		}
		slice.Endpoints = slices.Clone(slice.Endpoints)
		for j := range slice.Endpoints {
			slice.Endpoints[j].Ready = false
		}
	}
}

func anyReady(s record.Slice) bool {
	return slices.ContainsFunc(s.Endpoints, func(e record.Endpoint) bool { return e.Ready })
}
