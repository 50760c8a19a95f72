package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Peer is another member of the ClusterSet, seen from here: whether its records
// are believed, how fresh they are, and what of them is imported.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=fleetling
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Trusted",type=string,JSONPath=`.status.conditions[?(@.type=="Trusted")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Trusted")].reason`
// +kubebuilder:printcolumn:name="Exports",type=integer,JSONPath=`.status.exports`
// +kubebuilder:printcolumn:name="Imported",type=integer,JSONPath=`.status.imported`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Trusted")].message`
type Peer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Status PeerStatus `json:"status,omitempty"`
}

// PeerList is a list of Peers.
//
// +kubebuilder:object:root=true
type PeerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Peer `json:"items"`
}

// PeerStatus is what was last found. It is written on transitions only: a record
// that is renewed changes nothing here.
type PeerStatus struct {
	// State is Unknown (no record was taken since the agent started), Fresh, Late
	// (no new record within its lease) or Withdrawn.
	// +optional
	State string `json:"state,omitempty"`
	// ClusterUID is that of the kube-system namespace there.
	// +optional
	ClusterUID string `json:"clusterUID,omitempty"`
	// Key is the fingerprint of the member key that signs its records.
	// +optional
	Key string `json:"key,omitempty"`
	// Exports is how many Services it exports, Imported how many of them have
	// their namespace here, Refused how many of its endpoints are not taken.
	// +optional
	Exports int `json:"exports"`
	// +optional
	Imported int `json:"imported"`
	// +optional
	Refused int `json:"refused,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
