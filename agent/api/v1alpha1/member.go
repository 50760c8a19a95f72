package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Member is what this cluster knows of itself: who it is, which revision it
// follows, whose signature that carries, and how far it has come. There is one,
// named self.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=fleetling
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'self'",message="the one Member is named self"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.identity.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Add-ons",type=string,JSONPath=`.status.addOns.summary`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision.short`
// +kubebuilder:printcolumn:name="Signer",type=string,JSONPath=`.status.revision.signer`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Member struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec MemberSpec `json:"spec,omitempty"`
	// +optional
	Status MemberStatus `json:"status,omitempty"`
}

// MemberSpec is what people ask of the agent at once, past Git.
type MemberSpec struct {
	// Pause has the agent look and not touch. It ends by itself.
	// +optional
	Pause *Pause `json:"pause,omitempty"`
}

// Pause is a time in which nothing is applied, repaired or deleted. Fetching and
// verifying go on.
type Pause struct {
	// Until is when it ends: at most 72 hours from when it is set, which the agent
	// reads from metadata.managedFields; a longer one does not hold.
	Until metav1.Time `json:"until"`
	// Reason is for those who wonder.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`
}

// MemberList is a list of Members.
//
// +kubebuilder:object:root=true
type MemberList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Member `json:"items"`
}

// MemberStatus is what was last found.
type MemberStatus struct {
	// Identity is who this cluster is.
	// +optional
	Identity *Identity `json:"identity,omitempty"`
	// Source is what is followed.
	// +optional
	Source *Source `json:"source,omitempty"`
	// Revision is the newest verified revision.
	// +optional
	Revision *Revision `json:"revision,omitempty"`
	// AppliedRevision is the newest revision of which every add-on is applied.
	// +optional
	AppliedRevision string `json:"appliedRevision,omitempty"`
	// SelectionDigest is equal in clusters that select the same.
	// +optional
	SelectionDigest string `json:"selectionDigest,omitempty"`
	// AddOns and Objects are exact counts.
	// +optional
	AddOns Count `json:"addOns,omitempty"`
	// +optional
	Objects ObjectCount `json:"objects,omitempty"`
	// MemberKey is the line that this cluster's entry needs in its annotation
	// fleetling.dev/member-keys, so that others believe its records.
	// +optional
	MemberKey string `json:"memberKey,omitempty"`
	// Peers are counts by state.
	// +optional
	Peers *PeerCount `json:"peers,omitempty"`
	// Strays are objects that carry the add-on label and that nothing accounts
	// for: at most five, in words.
	// +optional
	Strays []string `json:"strays,omitempty"`
	// APIServer is the address at which the agent reaches the API server, and whose
	// word that is. Only there where there was a choice.
	// +optional
	APIServer string `json:"apiServer,omitempty"`
	// Birth is when this cluster came to what it is. Each time is written once.
	// +optional
	Birth *Birth `json:"birth,omitempty"`
	// LastHandledReconcileAt echoes the annotation fleetling.dev/reconcile-at.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Birth is a certificate: what happened when, for the first time.
type Birth struct {
	// APIUp is when the agent first had an answer from the API server.
	// +optional
	APIUp *metav1.Time `json:"apiUp,omitempty"`
	// Identity is when it knew who this cluster is.
	// +optional
	Identity *metav1.Time `json:"identity,omitempty"`
	// Verified is when it had verified a commit.
	// +optional
	Verified *metav1.Time `json:"verified,omitempty"`
	// AddOnApplied is when it had applied the first add-on of a verified commit.
	// +optional
	AddOnApplied *metav1.Time `json:"addOnApplied,omitempty"`
	// Ready is when all was ready.
	// +optional
	Ready *metav1.Time `json:"ready,omitempty"`
}

// Identity is who a cluster is, and where each label comes from.
type Identity struct {
	Name       string `json:"name"`
	ClusterSet string `json:"clusterSet"`
	// +optional
	Labels []Label `json:"labels,omitempty"`
}

// Label is a label that selection goes by.
type Label struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Origin is entry (the signed cluster entry) or identity (what the cluster
	// was told at birth).
	// +kubebuilder:validation:Enum=entry;identity
	Origin string `json:"origin"`
}

// Source is the branch that is followed.
type Source struct {
	URL    string `json:"url"`
	Branch string `json:"branch"`
}

// Revision is a verified commit.
type Revision struct {
	// Commit is the full id, Short its first twelve digits.
	Commit string `json:"commit"`
	Short  string `json:"short"`
	// Signer is the name of the key's file in signers/.
	Signer      string      `json:"signer"`
	Fingerprint string      `json:"fingerprint"`
	SignedAt    metav1.Time `json:"signedAt"`
}

// Count counts add-ons.
type Count struct {
	Total int `json:"total"`
	Ready int `json:"ready"`
	// Summary is READY/TOTAL.
	Summary string `json:"summary"`
}

// PeerCount counts the other members of the ClusterSet.
type PeerCount struct {
	Fresh     int `json:"fresh"`
	Late      int `json:"late"`
	Unknown   int `json:"unknown"`
	Withdrawn int `json:"withdrawn"`
}

// ObjectCount counts objects.
type ObjectCount struct {
	Total  int `json:"total"`
	Ready  int `json:"ready"`
	Failed int `json:"failed"`
	Held   int `json:"held"`
}
