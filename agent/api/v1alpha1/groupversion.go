package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version of this API.
const (
	Group   = "fleetling.dev"
	Version = "v1alpha1"
)

// AddToScheme adds the kinds of this package to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	gv := schema.GroupVersion{Group: Group, Version: Version}
	scheme.AddKnownTypes(gv, &Member{}, &MemberList{}, &AddOn{}, &AddOnList{}, &Peer{}, &PeerList{})
	metav1.AddToGroupVersion(scheme, gv)
	return nil
}
