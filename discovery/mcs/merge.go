package mcs

import (
	"slices"

	"github.com/fleetling/fleetling/discovery/record"
)

// The values of record.Export.Type and of its SessionAffinity.
const (
	clusterSetIP = "ClusterSetIP"
	headless     = "Headless"
	noAffinity   = "None"
)

// Import is one Service as the whole ClusterSet sees it: what its exports come to
// where they agree, and who wins where they don't. The zero Import is that nobody
// exports it.
type Import struct {
	// Service is what has been settled. Its ports and IP families are those of all
	// members; it has no parts.
	Service record.Export
	// Clusters are the names of the exporters, sorted.
	Clusters []string
	Slices   []ImportedSlice
	// Conflicts concern every exporter, in a fixed order of reasons.
	Conflicts []Conflict
}

// ImportedSlice is a slice of one member, with the ports that the import exposes.
type ImportedSlice struct {
	Cluster string
	// Index is its place among the slices of this member, which goes by family and
	// first address.
	Index int
	Slice record.Slice
}

// Merge decides what a Service is from all its exports (KEP-1645, "Constraints
// and Conflict Resolution"): the same shares in any order give the same Import on
// every member. It takes time linear in their number, sorting them aside. The
// shares must be of one Service and of different clusters, and are not changed.
func Merge(shares []Share) Import {
	if len(shares) == 0 {
		return Import{}
	}
	shares = slices.SortedFunc(slices.Values(shares), byPrecedence)
	ports := unite(shares)
	families, apart := commonFamilies(shares)

	settled := shares[0].Export
	settled.Parts = nil
	settled.Ports = ports.all
	settled.IPFamilies = families

	names := make([]string, len(shares))
	for i, s := range shares {
		names[i] = s.Cluster
	}
	slices.Sort(names)
	return Import{
		Service:   settled,
		Clusters:  names,
		Slices:    importSlices(shares, settled, ports),
		Conflicts: conflicts(shares, apart),
	}
}

// commonFamilies are the IP families that all have in common, in the winner's
// order, since over another one a client would reach only some of the backends.
// A member that has none in common with those before it stands apart: its
// endpoints are left out, rather than that all lose their address.
func commonFamilies(shares []Share) (families, apart []string) {
	for _, s := range shares {
		own := s.Export.IPFamilies
		if len(own) == 0 {
			continue
		}
		if families == nil {
			families = own
			continue
		}
		common := slices.DeleteFunc(slices.Clone(families), func(f string) bool { return !slices.Contains(own, f) })
		if len(common) == 0 {
			apart = append(apart, s.Cluster)
			continue
		}
		families = common
	}
	return families, apart
}

// importSlices are the endpoints of all shares as the import exposes them.
func importSlices(shares []Share, settled record.Export, ports union) []ImportedSlice {
	var imported []ImportedSlice
	var late []int
	for _, s := range shares {
		names := ports.names(s.Export.Ports)
		// A record has its parts in an order that any change turns over, and the
		// names of the imported slices go by their place.
		for i, slice := range slices.SortedStableFunc(slices.Values(s.Slices), compareSlices) {
			if len(settled.IPFamilies) > 0 && !slices.Contains(settled.IPFamilies, slice.AddressType) {
				continue
			}
			slice.Ports = rename(slice.Ports, names)
			// Behind an address only a port leads anywhere; a headless Service needs
			// none.
			if len(slice.Ports) == 0 && settled.Type != headless {
				continue
			}
			if s.Late {
				late = append(late, len(imported))
			}
			imported = append(imported, ImportedSlice{Cluster: s.Cluster, Index: i, Slice: slice})
		}
	}
	retire(imported, late)
	return imported
}
