package apply

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Stage is a step in the order of one add-on: what others need comes first,
// what can refuse others comes last. Deleting goes the other way.
type Stage int

// The stages in order.
const (
	// Definitions are Namespaces and CustomResourceDefinitions.
	Definitions Stage = iota
	// Parameters are the objects that admission policies read.
	Parameters
	// Classes are the kinds that end in Class.
	Classes
	// Access is RBAC and ServiceAccounts.
	Access
	// Workloads is everything else.
	Workloads
	// Guards are webhook configurations and policy bindings: they bite at
	// once, so all else of the add-on is there before them.
	Guards
	// Agent is our own Deployment: it ends the process that applies it.
	Agent

	stages
)

// Kinds that planning treats on their own, as schema.GroupKind prints them.
const (
	kindDefinition = "CustomResourceDefinition.apiextensions.k8s.io"
	kindNamespace  = "Namespace"
	kindService    = "Service"

	groupAccess    = "rbac.authorization.k8s.io"
	groupAdmission = "admissionregistration.k8s.io"
)

// stageOf tells an object's stage. params are the kinds that admission policies
// read their parameters from.
func stageOf(id ID, params map[schema.GroupKind]bool) Stage {
	gk := id.GroupKind()
	switch {
	case id.IsAgent():
		return Agent
	case gk.String() == kindDefinition || gk.String() == kindNamespace:
		return Definitions
	case params[gk]:
		return Parameters
	case gk.Group == groupAdmission && !strings.HasSuffix(gk.Kind, "AdmissionPolicy"):
		return Guards
	case strings.HasSuffix(gk.Kind, "Class"):
		return Classes
	case gk.Group == groupAccess, gk.String() == "ServiceAccount":
		return Access
	}
	return Workloads
}
