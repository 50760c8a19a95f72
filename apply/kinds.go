package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// ErrNotServed says that the API server does not know a kind. It may one day.
var ErrNotServed = errors.New("kind is not served by this cluster")

// ErrUndiscovered says that the API server could not tell whether it knows a
// kind, because the API that would serve it does not answer. It is not
// ErrNotServed: nothing may be concluded from it.
var ErrUndiscovered = errors.New("API does not answer: its APIService has no healthy backend")

// Resource is how a kind is served.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// Kinds is what one API server serves, at one time, and what the wanted
// definitions will make it serve.
type Kinds struct {
	served  map[schema.GroupVersionKind]Resource
	chosen  map[schema.GroupKind]Resource
	silent  map[schema.GroupVersion]bool
	defined map[schema.GroupKind]Definition
}

// Discover asks the API server for its kinds: two requests.
func Discover(ctx context.Context, client discovery.DiscoveryInterfaceWithContext) (Kinds, error) {
	groups, lists, err := discovery.ServerGroupsAndResourcesWithContext(ctx, client)
	failed, partial := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err)
	if err != nil && !partial {
		return Kinds{}, fmt.Errorf("discover the kinds of the API server: %w", err)
	}
	k := Kinds{
		served: map[schema.GroupVersionKind]Resource{},
		chosen: map[schema.GroupKind]Resource{},
		silent: map[schema.GroupVersion]bool{},
	}
	if partial {
		for gv := range failed.Groups {
			k.silent[gv] = true
		}
	}
	preferred := map[string]string{}
	for _, group := range groups {
		preferred[group.Name] = group.PreferredVersion.Version
	}
	for _, list := range lists {
		k.add(list, preferred)
	}
	return k, nil
}

// add takes what is served in one version. Of each kind the version that the
// server prefers is chosen, and the first one where that does not have it.
func (k Kinds) add(list *metav1.APIResourceList, preferred map[string]string) {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return
	}
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "patch") || !slices.Contains(r.Verbs, "watch") {
			continue
		}
		gvk := gv.WithKind(r.Kind)
		k.served[gvk] = Resource{GroupVersionResource: gv.WithResource(r.Name), Kind: r.Kind, Namespaced: r.Namespaced}
		if _, ok := k.chosen[gvk.GroupKind()]; !ok || gv.Version == preferred[gv.Group] {
			k.chosen[gvk.GroupKind()] = k.served[gvk]
		}
	}
}

// With notes what wanted definitions will serve, so that identities are known
// before the kinds are served.
func (k Kinds) With(wanted Wanted) Kinds {
	k.defined = map[schema.GroupKind]Definition{}
	for o := range wanted.all() {
		if o.Defines != nil {
			k.defined[o.Defines.GroupKind] = *o.Defines
		}
	}
	return k
}

// defines tells whether a wanted definition brings the kind in that version.
func (k Kinds) defines(gvk schema.GroupVersionKind) bool {
	return slices.Contains(k.defined[gvk.GroupKind()].Versions, gvk.Version)
}

// Resource gives how a kind is served in a version, or ErrNotServed, or
// ErrUndiscovered.
func (k Kinds) Resource(gvk schema.GroupVersionKind) (Resource, error) {
	if r, ok := k.served[gvk]; ok {
		return r, nil
	}
	if k.silent[gvk.GroupVersion()] {
		return Resource{}, fmt.Errorf("%s: %w", gvk.GroupVersion(), ErrUndiscovered)
	}
	return Resource{}, fmt.Errorf("%s %s: %w%s", gvk.GroupVersion(), gvk.Kind, ErrNotServed, k.nearMiss(gvk))
}

// Any gives how a kind is served in the version that the server prefers.
func (k Kinds) Any(gk schema.GroupKind) (Resource, error) {
	if r, ok := k.chosen[gk]; ok {
		return r, nil
	}
	for gv := range k.silent {
		if gv.Group == gk.Group {
			return Resource{}, fmt.Errorf("%s: %w", gv, ErrUndiscovered)
		}
	}
	return Resource{}, fmt.Errorf("%s: %w", gk, ErrNotServed)
}

// Identify gives an object's identity. While neither the server nor a wanted
// definition knows the kind's scope it is what the manifest says.
func (k Kinds) Identify(o Object) ID {
	id := ID{Group: o.GVK.Group, Kind: o.GVK.Kind, Namespace: o.Namespace, Name: o.Name}
	if k.clusterScoped(o.GVK.GroupKind()) {
		id.Namespace = ""
	}
	return id
}

func (k Kinds) clusterScoped(gk schema.GroupKind) bool {
	if r, ok := k.chosen[gk]; ok {
		return !r.Namespaced
	}
	d, ok := k.defined[gk]
	return ok && !d.Namespaced
}

// nearMiss helps with the two slips that people make: letter case and version.
func (k Kinds) nearMiss(gvk schema.GroupVersionKind) string {
	var near []string
	for known := range k.served {
		if strings.EqualFold(known.Kind, gvk.Kind) && (known.Group == gvk.Group || known.Kind != gvk.Kind) {
			near = append(near, known.GroupVersion().String()+" "+known.Kind)
		}
	}
	if len(near) == 0 {
		return ""
	}
	slices.Sort(near)
	return ": it serves " + strings.Join(near[:min(len(near), 3)], ", ")
}
