package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AddOn is how far one selected add-on has come in this cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=fleetling,path=addons,singular=addon
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Objects",type=string,JSONPath=`.status.objects.summary`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.objects.failed`
// +kubebuilder:printcolumn:name="Held",type=integer,JSONPath=`.status.objects.held`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revisionShort`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.status.path`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type AddOn struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Status AddOnStatus `json:"status,omitempty"`
}

// AddOnList is a list of AddOns.
//
// +kubebuilder:object:root=true
type AddOnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddOn `json:"items"`
}

// AddOnStatus is what was last found.
type AddOnStatus struct {
	// Path is the folder in the fleet repository, as resolved for this cluster.
	// +optional
	Path string `json:"path,omitempty"`
	// Revision is the commit whose content of this add-on is rolled out, and
	// RevisionShort its first twelve digits.
	// +optional
	Revision      string `json:"revision,omitempty"`
	RevisionShort string `json:"revisionShort,omitempty"`
	// Digest is over the rendered objects: equal digests are equal content.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Objects are exact counts.
	// +optional
	Objects AddOnObjects `json:"objects,omitempty"`
	// Failures are the first five.
	// +optional
	// +kubebuilder:validation:MaxItems=5
	Failures []Failure `json:"failures,omitempty"`
	// Held are the deletions that wait for consent.
	// +optional
	Held *HeldDeletions `json:"held,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AddOnObjects counts the objects of an add-on.
type AddOnObjects struct {
	Total  int `json:"total"`
	Ready  int `json:"ready"`
	Failed int `json:"failed"`
	Held   int `json:"held"`
	// Summary is READY/TOTAL.
	Summary string `json:"summary"`
}

// Failure is one thing that went wrong, in words that a person can act on.
type Failure struct {
	// Object is Kind/namespace/name, File its place in the fleet repository
	// with the line where it is known.
	// +optional
	Object string `json:"object,omitempty"`
	// +optional
	File    string `json:"file,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// HeldDeletions are objects that are not deleted without consent.
type HeldDeletions struct {
	Count int `json:"count"`
	// Digest names the set: "sha256:" and the hash of its sorted identities.
	Digest string `json:"digest"`
	// Why says which rule holds it.
	Why string `json:"why"`
	// Objects are the first five.
	// +optional
	// +kubebuilder:validation:MaxItems=5
	Objects []string `json:"objects,omitempty"`
}
