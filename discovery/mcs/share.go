package mcs

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetling/fleetling/discovery/record"
)

// Share is what one member contributes to one Service of the ClusterSet.
type Share struct {
	// Cluster is the member's name, one DNS label.
	Cluster string
	Export  record.Export
	// Slices are the endpoints that Export.Parts name, in any order; the endpoints
	// of each are sorted.
	Slices []record.Slice
	// Late is that the member has not been heard of for longer than its lease and
	// the grace time, while others have.
	Late bool
}

// Key is the namespace and name of the Service.
func (s Share) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Export.Namespace, Name: s.Export.Name}
}

// byPrecedence sorts the winner of every conflict first (KEP-1645, "Conflict
// resolution policy"). Creation times have seconds only, so that the name has to
// decide between equals.
func byPrecedence(a, b Share) int {
	return cmp.Or(a.Export.Created.Compare(b.Export.Created), cmp.Compare(a.Cluster, b.Cluster))
}
