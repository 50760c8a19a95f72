package peer

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/fleetling/fleetling/discovery/record"
)

// Share is what a peer contributes to a service here. It is read only: shares
// have memory in common.
type Share struct {
	Cluster string
	// Issued is when the record was made, by the exporter's clock.
	Issued time.Time
	Export record.Export
	// Slices hold only endpoints that lie where they may.
	Slices []record.Slice
	// Late is that the endpoints have to be not ready, unless they are the last of
	// the service.
	Late bool
}

// Of gives the shares of a service, sorted by cluster. Its cost depends on who
// exports the service, not on the fleet.
func (p *Peers) Of(service Service) []Share {
	var all []Share
	for _, name := range sortedKeys(p.exporters[service]) {
		if share, ok := p.shareOf(p.members[name], service); ok {
			all = append(all, share)
		}
	}
	return all
}

// Services are those that a peer may have shares of, sorted.
func (p *Peers) Services() []Service {
	return slices.SortedFunc(maps.Keys(p.exporters), compareServices)
}

// Settled is whether it means something that a cluster has no share of a service.
// Before its record and its parts have been taken it does not, nor before it is
// known that the namespace is here, as after a restart: what is here of it stays.
func (p *Peers) Settled(cluster string, service Service) bool {
	m := p.members[cluster]
	switch {
	case !p.listed, !has(p.namespaces, service.Namespace):
		return false
	case m == nil || m.blocked.Reason != "":
		return true
	case m.state == Unknown:
		// A key that is gone from the list has taken all with it.
		return len(m.entry.Keys) == 0
	}
	e := m.exports[service]
	return e == nil || e.current != nil
}

func (p *Peers) shareOf(m *member, service Service) (Share, bool) {
	e := m.exports[service]
	if e == nil || e.current == nil || m.blocked.Reason != "" || p.policy.Refuses(m.entry.Name, service.Namespace) != "" {
		return Share{}, false
	}
	share := Share{Cluster: m.entry.Name, Issued: m.issued, Export: *e.current, Late: m.notReady}
	for _, digest := range e.current.Parts {
		slice, _ := p.contain(m, m.parts[digest])
		share.Slices = append(share.Slices, slice)
	}
	return share, true
}

// contain gives the endpoints that may be taken and those that may not.
func (p *Peers) contain(m *member, slice record.Slice) (record.Slice, []refusedEndpoint) {
	var kept []record.Endpoint
	var refused []refusedEndpoint
	for _, endpoint := range slice.Endpoints {
		// DecodeSlice has parsed it: the zero address is refused as well.
		addr, _ := netip.ParseAddr(endpoint.Address)
		if reason := Contain(addr, m.entry.Ranges, p.ours); reason != "" {
			refused = append(refused, refusedEndpoint{endpoint.Address, reason})
			continue
		}
		kept = append(kept, endpoint)
	}
	slice.Endpoints = kept
	return slice, refused
}

type refusedEndpoint struct {
	address string
	reason  Reason
}
