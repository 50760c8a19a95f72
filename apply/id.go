package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ID is the identity of an object on one API server: version is no part of it,
// and the namespace of a cluster-scoped object is empty, whatever its manifest
// says.
type ID struct {
	Group, Kind, Namespace, Name string
}

// GroupKind is the kind without its version.
func (id ID) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// String is Kind/name or Kind/namespace/name, as people read it.
func (id ID) String() string {
	if id.Namespace == "" {
		return id.Kind + "/" + id.Name
	}
	return id.Kind + "/" + id.Namespace + "/" + id.Name
}

// Key is group/kind/namespace/name, the form that is stored and hashed. No part
// can hold a slash: the API server refuses such names.
func (id ID) Key() string {
	return id.Group + "/" + id.Kind + "/" + id.Namespace + "/" + id.Name
}

// ParseKey is the inverse of Key.
func ParseKey(key string) (ID, error) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 || parts[1] == "" || parts[3] == "" {
		return ID{}, fmt.Errorf("%q is not group/kind/namespace/name", key)
	}
	return ID{Group: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3]}, nil
}

// Compare orders by Key's parts.
func (id ID) Compare(other ID) int {
	return cmp.Or(
		cmp.Compare(id.Group, other.Group), cmp.Compare(id.Kind, other.Kind),
		cmp.Compare(id.Namespace, other.Namespace), cmp.Compare(id.Name, other.Name))
}

// sortedIDs gives the keys of a map in order.
func sortedIDs[V any](m map[ID]V) []ID {
	ids := make([]ID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, ID.Compare)
	return ids
}
