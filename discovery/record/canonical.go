package record

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// canonical gives a copy in the one form that has an encoding: sorted, without
// what is there twice, times in UTC and cut, empty lists nil.
func (r Record) canonical() Record {
	r.Issued = r.Issued.UTC().Truncate(time.Millisecond)
	r.Exports = orNil(slices.Clone(r.Exports))
	for i := range r.Exports {
		r.Exports[i] = r.Exports[i].canonical()
	}
	slices.SortStableFunc(r.Exports, compareExports)
	return r
}

func compareExports(a, b Export) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func (e Export) canonical() Export {
	e.Created = e.Created.UTC().Truncate(time.Second)
	e.Ports = orNil(slices.Clone(e.Ports))
	slices.SortStableFunc(e.Ports, func(a, b Port) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	e.IPFamilies = orNil(slices.Clone(e.IPFamilies))
	e.Labels, e.Annotations = mapOrNil(e.Labels), mapOrNil(e.Annotations)
	e.Parts = orNil(slices.Clone(e.Parts))
	slices.Sort(e.Parts)
	e.Parts = slices.Compact(e.Parts)
	return e
}

func (s Slice) canonical() Slice {
	s.Ports = orNil(slices.Clone(s.Ports))
	slices.SortStableFunc(s.Ports, func(a, b SlicePort) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	s.Endpoints = orNil(slices.Clone(s.Endpoints))
	slices.SortFunc(s.Endpoints, compareEndpoints)
	s.Endpoints = slices.Compact(s.Endpoints)
	return s
}

// compareEndpoints is total: two that differ have an order. Addresses that can't
// be read are equal here and refused by check.
func compareEndpoints(a, b Endpoint) int {
	first, _ := netip.ParseAddr(a.Address)
	second, _ := netip.ParseAddr(b.Address)
	return cmp.Or(
		first.Compare(second),
		strings.Compare(a.Address, b.Address),
		strings.Compare(a.Hostname, b.Hostname),
		strings.Compare(a.Zone, b.Zone),
		compareBools(b.Ready, a.Ready),
		compareBools(b.Serving, a.Serving),
		compareBools(b.Terminating, a.Terminating),
	)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// oneHostnameEach changes the endpoints of a canonical slice, which is a copy.
func (s Slice) oneHostnameEach() Slice {
	seen := map[string]struct{}{}
	for i, endpoint := range s.Endpoints {
		if _, taken := seen[endpoint.Hostname]; taken {
			s.Endpoints[i].Hostname = ""
		}
		seen[endpoint.Hostname] = struct{}{}
	}
	return s.canonical()
}

func (s Status) canonical() Status {
	s.Issued = s.Issued.UTC().Truncate(time.Millisecond)
	s.Failing = orNil(slices.Clone(s.Failing))
	return s
}

func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

func mapOrNil(pairs map[string]string) map[string]string {
	if len(pairs) == 0 {
		return nil
	}
	return maps.Clone(pairs)
}
