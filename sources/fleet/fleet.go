package fleet

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// Unlisted says what a cluster without an entry goes by.
type Unlisted string

const (
	// UnlistedIdentity lets a cluster that never had an entry go by its
	// identity. It is what a file that says nothing means.
	UnlistedIdentity Unlisted = "identity"
	// UnlistedDeny selects nothing for a cluster without an entry.
	UnlistedDeny Unlisted = "deny"
)

// Fleet is fleetling.yaml and the cluster entries, validated. Read makes it;
// nobody changes it.
type Fleet struct {
	// ClusterSet is one DNS label.
	ClusterSet string
	Unlisted   Unlisted
	// Labels are those that selectors and templates may use, by key.
	Labels map[string]LabelRule
	// AddOns stand in file order, at least one.
	AddOns []AddOnRule
	// Acknowledge stands in file order.
	Acknowledge []Acknowledgement
	// Registry is where records are shared; nil is no ClusterSet.
	Registry *Registry
	// Exports stand in file order; nil is that the file says nothing of them.
	Exports []ExportRule
	// Clusters are the entries, sorted by name; no two have the same.
	Clusters []Cluster

	// clusterSetLine and clustersLine are those of the keys, for errors.
	clusterSetLine, clustersLine int
}

// LabelRule declares a label.
type LabelRule struct {
	// Required labels must be on every cluster, and not empty.
	Required bool
	// Values are all that the label may have; nil is any label value.
	Values []string
	Line   int
}

// AddOnRule is an add-on as fleetling.yaml declares it, for all clusters.
type AddOnRule struct {
	// Name is one DNS label.
	Name string
	Line int
	// Path is a folder, with templates.
	Path Text
	// When selects clusters; nil is every cluster.
	When labels.Selector
	// Components are laid over the path in this order.
	Components []ComponentRule
	// DependsOn are names of other add-ons in the file.
	DependsOn []Text
	// Substitute gives a value, with templates, by variable name.
	Substitute map[string]Text
	// Timeout is positive.
	Timeout time.Duration

	requires []requirement
}

// ComponentRule is a kustomize component of an add-on.
type ComponentRule struct {
	// Path is a folder, with templates.
	Path Text
	// When selects clusters; nil is every cluster.
	When labels.Selector
	// Optional components may be absent, not broken.
	Optional bool

	requires []requirement
}

// Acknowledgement releases a held set of deletions, once.
type Acknowledgement struct {
	// AddOn is a name that need not be in the file any more.
	AddOn string
	// Delete is the digest of the held set: "sha256:" and 64 lower-case
	// hexadecimal digits.
	Delete string
	// Reason is for people; not empty.
	Reason string
	Line   int
}

// Cluster gives the entry of that name.
func (f Fleet) Cluster(name string) (Cluster, bool) {
	at, ok := slices.BinarySearchFunc(f.Clusters, name, func(c Cluster, name string) int {
		return strings.Compare(c.Name, name)
	})
	if !ok {
		return Cluster{}, false
	}
	return f.Clusters[at], true
}
