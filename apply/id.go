package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"
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

// ownNamespace is where we live.
const ownNamespace = "fleetling-system"

// IsAgent tells that this is the Deployment of fleetling itself.
func (id ID) IsAgent() bool {
	return id == ID{Group: "apps", Kind: "Deployment", Namespace: ownNamespace, Name: "fleetling"}
}

// String is Kind/name or Kind/namespace/name, as people read it.
func (id ID) String() string {
	if id.Namespace == "" {
		return id.Kind + "/" + id.Name
	}
	return id.Kind + "/" + id.Namespace + "/" + id.Name
}

// Key is group/kind/namespace/name, the form that is stored and hashed. No part
// can hold a slash or a line break: see checkNames.
func (id ID) Key() string {
	return id.Group + "/" + id.Kind + "/" + id.Namespace + "/" + id.Name
}

// ParseKey is the inverse of Key.
func ParseKey(key string) (ID, error) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 || parts[1] == "" || parts[3] == "" {
		return ID{}, fmt.Errorf("%q is not group/kind/namespace/name", key)
	}
	if err := checkNames(parts[2], parts[3]); err != nil {
		return ID{}, fmt.Errorf("%q: %w", key, err)
	}
	return ID{Group: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3]}, nil
}

// checkNames refuses what can't be a segment of a request's path or a line of
// the inventory, whatever the rules of the kind are. A namespace is a DNS label
// (RFC 1123), a name at least one path segment: RBAC takes more than DNS does.
func checkNames(namespace, name string) error {
	if namespace != "" {
		if faults := content.IsDNS1123Label(namespace); len(faults) > 0 {
			return fmt.Errorf("namespace: %s", strings.Join(faults, "; "))
		}
	}
	faults := content.IsPathSegmentName(name)
	if len(name) > maxName {
		faults = append(faults, content.MaxLenError(maxName))
	}
	if strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name) {
		faults = append(faults, "must be text without control characters")
	}
	if len(faults) > 0 {
		return fmt.Errorf("name: %s", strings.Join(faults, "; "))
	}
	return nil
}

// maxName is how long a name can be, in bytes (a DNS subdomain, RFC 1123).
const maxName = 253

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
