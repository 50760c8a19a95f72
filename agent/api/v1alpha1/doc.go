// Package v1alpha1 holds the status objects of fleetling: Member, this
// cluster's own view of itself, and AddOn, one per selected add-on. They are
// outputs, read with kubectl and waited for with `kubectl wait`; the agent is
// configured by its file and by Git alone. Nothing in them ages: they are
// written when something has changed, and only then.
//
// +kubebuilder:object:generate=true
// +groupName=fleetling.dev
package v1alpha1
