package apply

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// kindsOf serves kinds, each as "GROUP/VERSION KIND namespaced|cluster", the
// preferred version of a group first.
func kindsOf(tb testing.TB, lines ...string) Kinds {
	tb.Helper()
	k := Kinds{served: map[schema.GroupVersionKind]Resource{}, chosen: map[schema.GroupKind]Resource{}, silent: map[schema.GroupVersion]bool{}}
	for _, line := range lines {
		words := strings.Fields(line)
		require.Len(tb, words, 3, line)
		gvk := schema.FromAPIVersionAndKind(words[0], words[1])
		resource := Resource{GroupVersionResource: gvk.GroupVersion().WithResource(strings.ToLower(words[1]) + "s"), Kind: words[1], Namespaced: words[2] == "namespaced"}
		k.served[gvk] = resource
		if _, ok := k.chosen[gvk.GroupKind()]; !ok {
			k.chosen[gvk.GroupKind()] = resource
		}
	}
	return k
}

func discover(t *testing.T, transport http.RoundTripper) (Kinds, error) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: "http://cluster", Transport: transport, QPS: -1})
	require.NoError(t, err)
	return Discover(t.Context(), client)
}

func TestKindsAreWhatTheServerSays(t *testing.T) {
	c := newCluster("apps/v1 Deployment namespaced", "example.com/v1beta1 Widget namespaced", "example.com/v1 Widget namespaced", "example.com/v1beta1 Old cluster")
	c.silent = []schema.GroupVersion{{Group: "metrics.example.com", Version: "v1"}}
	k, err := discover(t, c)
	require.NoError(t, err)

	widget := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	any, err := k.Any(widget)
	require.NoError(t, err)
	assert.Equal(t, Resource{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "widgets"}, Kind: "Widget", Namespaced: true}, any, "the preferred version is the first that this server names")
	exact, err := k.Resource(widget.WithVersion("v1"))
	require.NoError(t, err)
	assert.Equal(t, "v1", exact.Version)
	_, err = k.Resource(widget.WithVersion("v1/status"))
	require.ErrorIs(t, err, ErrNotServed, "subresources are no kinds")

	_, err = k.Resource(schema.GroupVersionKind{Group: "metrics.example.com", Version: "v1", Kind: "Reading"})
	require.ErrorIs(t, err, ErrUndiscovered)
	require.NotErrorIs(t, err, ErrNotServed)
	_, err = k.Any(schema.GroupKind{Group: "metrics.example.com", Kind: "Reading"})
	require.ErrorIs(t, err, ErrUndiscovered)
	_, err = k.Any(schema.GroupKind{Group: "nowhere.example.com", Kind: "Reading"})
	require.ErrorIs(t, err, ErrNotServed)
}

func TestThePreferredVersionIsChosenWhereItHasTheKind(t *testing.T) {
	list := func(gv string, kinds ...string) *metav1.APIResourceList {
		l := &metav1.APIResourceList{GroupVersion: gv}
		for _, kind := range kinds {
			l.APIResources = append(l.APIResources, metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind, Verbs: metav1.Verbs{"patch", "watch"}})
		}
		return l
	}
	k := kindsOf(t)
	preferred := map[string]string{"example.com": "v1"}
	k.add(list("example.com/v2", "Widget", "New"), preferred)
	k.add(list("example.com/v1", "Widget"), preferred)
	k.add(list("example.com/v1alpha1", "Widget", "New"), preferred)
	k.add(list("other.example.com/v3", "Thing"), preferred)
	k.add(list("not/a/version", "Thing"), preferred)
	for kind, version := range map[string]string{"Widget": "v1", "New": "v2"} {
		got, err := k.Any(schema.GroupKind{Group: "example.com", Kind: kind})
		require.NoError(t, err)
		assert.Equal(t, version, got.Version, kind)
	}
	got, err := k.Any(schema.GroupKind{Group: "other.example.com", Kind: "Thing"})
	require.NoError(t, err)
	assert.Equal(t, "v3", got.Version, "a group whose preference is not known has its kinds all the same")
}

func TestWhatCanNotBeAppliedOrWatchedIsNoKind(t *testing.T) {
	k := kindsOf(t)
	k.add(&metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "bindings", Kind: "Binding", Verbs: metav1.Verbs{"create"}},
		{Name: "pods/eviction", Kind: "Eviction", Verbs: metav1.Verbs{"patch", "watch"}},
		{Name: "componentstatuses", Kind: "ComponentStatus", Verbs: metav1.Verbs{"get", "list", "watch"}},
		{Name: "pods", Kind: "Pod", Verbs: metav1.Verbs{"get", "patch", "watch"}},
	}}, nil)
	assert.Len(t, k.served, 1)
	assert.Len(t, k.chosen, 1)
}

type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

func TestAServerThatDoesNotAnswerServesNotNothing(t *testing.T) {
	_, err := discover(t, failing{assert.AnError})
	require.ErrorIs(t, err, assert.AnError)
	assert.ErrorContains(t, err, "discover the kinds of the API server")
}

func TestANearMissIsNamed(t *testing.T) {
	k := kindsOf(t, "v1 ConfigMap namespaced", "example.com/v1 Widget namespaced", "example.com/v2 Widget namespaced", "other.com/v1 widget cluster", "a.com/v1 WIDGET cluster")
	for gvk, want := range map[schema.GroupVersionKind]string{
		{Version: "v1", Kind: "configMap"}:                            "it serves v1 ConfigMap",
		{Group: "example.com", Version: "v3", Kind: "Widget"}:         "it serves a.com/v1 WIDGET, example.com/v1 Widget, example.com/v2 Widget",
		{Group: "third.com", Version: "v1", Kind: "Gadget"}:           "third.com/v1 Gadget: kind is not served by this cluster",
		{Group: "apps", Version: "v1", Kind: "ConfigMap"}:             "apps/v1 ConfigMap: kind is not served by this cluster",
		{Group: "example.com", Version: "v1", Kind: "CustomWidgetts"}: "not served",
	} {
		_, err := k.Resource(gvk)
		require.ErrorIs(t, err, ErrNotServed)
		assert.True(t, strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), want), "%s: %v", gvk, err)
	}
}

func TestDefinitionsOfAnEarlierPassAreForgotten(t *testing.T) {
	crd, failures := Decode("shop", []Manifest{manifestOf(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: w}, spec: {group: example.com, names: {kind: Widget}, scope: Cluster, versions: [{name: v1, served: true}]}}")})
	require.Empty(t, failures)
	widget := Object{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, Namespace: "web", Name: "w"}
	k := kindsOf(t).With(Wanted{AddOns: []AddOn{{Claims: crd}}})
	assert.Empty(t, k.Identify(widget).Namespace)
	assert.True(t, k.defines(widget.GVK))
	k = k.With(Wanted{})
	assert.Equal(t, "web", k.Identify(widget).Namespace)
	assert.False(t, k.defines(widget.GVK))
}
