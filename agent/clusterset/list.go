package clusterset

import (
	"reflect"
	"slices"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/peer"
)

// Registry is where the members of a ClusterSet put their records; Git or
// NATS is set.
type Registry struct {
	Git  string   `json:"git,omitempty"`
	NATS []string `json:"nats,omitempty"`
	// Bucket is that of NATS.
	Bucket string `json:"bucket,omitempty"`
}

// List is what the signed fleet repository says of the ClusterSet.
type List struct {
	// ClusterSet and Cluster say who we are.
	ClusterSet string `json:"clusterSet"`
	Cluster    string `json:"cluster"`
	// Registry is nil where the fleet has none.
	Registry *Registry `json:"registry,omitempty"`
	// Entries are the cluster list, our own entry in it.
	Entries []peer.Entry `json:"entries,omitempty"`
	Policy  peer.Policy  `json:"policy"`
	// Acknowledged are the digests of removals that are agreed to.
	Acknowledged []discovery.Digest `json:"acknowledged,omitempty"`
}

func (l List) timing() peer.Timing {
	if l.Registry != nil && l.Registry.Git != "" {
		return peer.GitTiming()
	}
	return peer.NATSTiming()
}

func (l List) own() (peer.Entry, bool) {
	at := slices.IndexFunc(l.Entries, func(e peer.Entry) bool { return e.Name == l.Cluster })
	if at < 0 {
		return peer.Entry{}, false
	}
	return l.Entries[at], true
}

// another tells whether only a fresh start can follow the change.
func (l List) another(o List) bool {
	return l.ClusterSet != o.ClusterSet || l.Cluster != o.Cluster || !reflect.DeepEqual(l.Registry, o.Registry)
}

// Kept is what survives a restart.
type Kept struct {
	List   List        `json:"list"`
	Memory peer.Memory `json:"memory"`
}
