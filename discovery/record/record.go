package record

import (
	"time"

	"github.com/fleetling/fleetling/discovery"
)

// Schema is the major version of the encoding that this package writes. A record
// of another one is refused; unknown fields of this one are ignored.
const Schema = 1

// Record is what a member says of itself: the manifest of its exports.
type Record struct {
	Schema int `json:"schema"`
	// ClusterSet and Cluster are DNS labels.
	ClusterSet string `json:"clusterSet"`
	Cluster    string `json:"cluster"`
	// ClusterUID is that of the kube-system namespace: two clusters of one name
	// differ in it.
	ClusterUID string `json:"clusterUID"`
	// Sequence rises with every record of a key.
	Sequence uint64 `json:"sequence"`
	// Issued has milliseconds, UTC.
	Issued time.Time `json:"issued"`
	// LeaseSeconds is how long a reader may take the record for fresh, from when
	// the reader took it.
	LeaseSeconds int `json:"leaseSeconds"`
	// Withdrawn is the tombstone: the member has left, and exports nothing.
	Withdrawn bool `json:"withdrawn,omitempty"`
	// Exports are sorted by namespace and name.
	Exports []Export `json:"exports,omitempty"`
}

// Export is one exported Service (KEP-1645).
type Export struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Created is the ServiceExport's creation time, in seconds, UTC. The oldest
	// wins a conflict.
	Created time.Time `json:"created"`
	// Type is ClusterSetIP or Headless.
	Type  string `json:"type"`
	Ports []Port `json:"ports,omitempty"`
	// SessionAffinity is None or ClientIP.
	SessionAffinity string `json:"sessionAffinity,omitempty"`
	// AffinityTimeoutSeconds is that of ClientIP; 0 is not given.
	AffinityTimeoutSeconds int32 `json:"affinityTimeoutSeconds,omitempty"`
	// InternalTrafficPolicy is Cluster, Local, or not given.
	InternalTrafficPolicy string `json:"internalTrafficPolicy,omitempty"`
	TrafficDistribution   string `json:"trafficDistribution,omitempty"`
	// IPFamilies are IPv4, IPv6, in the Service's order.
	IPFamilies []string `json:"ipFamilies,omitempty"`
	// Labels and Annotations are spec.exportedLabels and
	// spec.exportedAnnotations of the ServiceExport.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Parts are the digests of encoded Slices; together they are the endpoints.
	Parts []discovery.Digest `json:"parts,omitempty"`
}

// Port is a port of an exported Service. The target port is in the slices.
type Port struct {
	Name        string `json:"name,omitempty"`
	Protocol    string `json:"protocol"`
	AppProtocol string `json:"appProtocol,omitempty"`
	Port        int32  `json:"port"`
}

// Slice is a part: one EndpointSlice of the member, without what only means
// something there.
type Slice struct {
	// AddressType is IPv4 or IPv6.
	AddressType string      `json:"addressType"`
	Ports       []SlicePort `json:"ports,omitempty"`
	// Endpoints are sorted by address.
	Endpoints []Endpoint `json:"endpoints,omitempty"`
}

// SlicePort is what listens: Port is the target's.
type SlicePort struct {
	Name        string `json:"name,omitempty"`
	Protocol    string `json:"protocol"`
	AppProtocol string `json:"appProtocol,omitempty"`
	Port        int32  `json:"port"`
}

// Endpoint is one backend.
type Endpoint struct {
	// Address is one, in its canonical text.
	Address     string `json:"address"`
	Ready       bool   `json:"ready,omitempty"`
	Serving     bool   `json:"serving,omitempty"`
	Terminating bool   `json:"terminating,omitempty"`
	Hostname    string `json:"hostname,omitempty"`
	Zone        string `json:"zone,omitempty"`
}

// Status is the second record of a member: how it is doing. Only people read it.
type Status struct {
	Schema       int       `json:"schema"`
	ClusterSet   string    `json:"clusterSet"`
	Cluster      string    `json:"cluster"`
	Sequence     uint64    `json:"sequence"`
	Issued       time.Time `json:"issued"`
	LeaseSeconds int       `json:"leaseSeconds"`
	// Revision is the commit that is rolled out.
	Revision string `json:"revision,omitempty"`
	Ready    bool   `json:"ready"`
	// Reason and Message are those of Member's condition Ready.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// AddOns and Exports are counts.
	AddOns  int `json:"addOns"`
	Exports int `json:"exports"`
	// Failing are the first five add-ons that are not ready.
	Failing []string `json:"failing,omitempty"`
	// Version is that of the agent.
	Version string `json:"version,omitempty"`
}
