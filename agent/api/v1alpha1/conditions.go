package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of Member. Ready sums the others up; Reconciling and Stalled
// are there only while they are True (kstatus).
const (
	// Ready: the last verified revision is applied and healthy, nothing held.
	Ready = "Ready"
	// SourceReady: the branch was read at the last try.
	SourceReady = "SourceReady"
	// Verified: the branch's head is signed as it has to be.
	Verified = "Verified"
	// Selected: the add-ons of this cluster are known.
	Selected = "Selected"
	// SnapshotKept: what is applied can be repaired by a new Pod while Git is
	// away.
	SnapshotKept = "SnapshotKept"
	// Connected: this cluster's own record can be read back from the registry of
	// its ClusterSet. Only there where the fleet has a registry.
	Connected = "Connected"
	// Paused: nothing is applied, repaired or deleted for a time. Only there while
	// True, or where a pause is asked for that can't hold.
	Paused = "Paused"
	// Reconciling: something is under way.
	Reconciling = "Reconciling"
	// Stalled: a person has to do something.
	Stalled = "Stalled"
)

// Condition types of both kinds, and of AddOn alone.
const (
	// Applied: all objects are in the cluster as wanted.
	Applied = "Applied"
	// Rendered: the add-on's path gave objects.
	Rendered = "Rendered"
	// Healthy: all objects are current, by kstatus.
	Healthy = "Healthy"
	// Held: deletions wait for consent. Only there while True.
	Held = "Held"
)

// Condition types of Peer.
const (
	// Trusted: its last record was taken.
	Trusted = "Trusted"
	// Fresh: its lease runs.
	Fresh = "Fresh"
	// Contained: all that its record says is allowed to it: namespaces and
	// addresses.
	Contained = "Contained"
)

// ReconcileAtAnnotation on member/self asks for a pass now. Its value, usually
// a time, is echoed in status.lastHandledReconcileAt when the pass is done.
const ReconcileAtAnnotation = "fleetling.dev/reconcile-at"

// Self is the name of the one Member.
const Self = "self"

// StatusConditions gives the conditions, to read and to change.
func (m *Member) StatusConditions() *[]metav1.Condition { return &m.Status.Conditions }

// StatusConditions gives the conditions, to read and to change.
func (a *AddOn) StatusConditions() *[]metav1.Condition { return &a.Status.Conditions }

// StatusConditions gives the conditions, to read and to change.
func (p *Peer) StatusConditions() *[]metav1.Condition { return &p.Status.Conditions }
