package mainjob_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/world"
)

// definition is a CustomResourceDefinition with the given versions, the last one
// stored.
func definition(plural, kind string, versions ...string) string {
	text := fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %s.example.com}\nspec:\n"+
		"  group: example.com\n  scope: Namespaced\n  names: {plural: %s, singular: %s, kind: %s}\n  versions:\n", plural, plural, strings.ToLower(kind), kind)
	for i, v := range versions {
		text += fmt.Sprintf("  - name: %s\n    served: true\n    storage: %v\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}\n", v, i == len(versions)-1)
	}
	return text
}

func widget(version, kind, name string) string {
	return fmt.Sprintf("apiVersion: example.com/%s\nkind: %s\nmetadata: {name: %s, namespace: w}\nspec: {size: 1}\n", version, kind, name)
}

// create makes an object by hand.
func (s *scenario) create(text string) {
	s.Helper()
	u := &unstructured.Unstructured{}
	s.do(yaml.Unmarshal([]byte(text), &u.Object))
	s.do(s.m.Client.Create(s.Context(), u, client.FieldOwner("somebody")))
}

// exists waits until an object of namespace w is there.
func (s *scenario) exists(gvk schema.GroupVersionKind, name string) {
	s.Helper()
	s.do(s.m.Eventually(s.Context(), func(ctx context.Context) error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		return s.m.Client.Get(ctx, client.ObjectKey{Namespace: "w", Name: name}, u)
	}))
}

func TestB08_DefinitionsNamespacesAndWhatNeedsThemConvergeFromOneCommit(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns("{name: widgets, path: addons/widgets}")
	s.fleet.Write("addons/widgets/1-cr.yaml", widget("v1", "Widget", "first"))
	s.fleet.Write("addons/widgets/2-cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: w}\n")
	s.fleet.Write("addons/widgets/3-ns.yaml", namespace("w"))
	s.fleet.Write("addons/widgets/4-crd.yaml", definition("widgets", "Widget", "v1"))
	s.fleet.Write("addons/widgets/5-binding.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b, namespace: w}\n"+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\nsubjects: [{kind: ServiceAccount, name: later, namespace: w}]\n")
	s.fleet.Write("addons/widgets/6-sa.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: later, namespace: w}\n")
	s.fleet.Write("addons/widgets/7-late.yaml", widget("v1", "Gadget", "late"))
	first := s.fleet.Push("a gadget that nobody defines")
	s.join()

	// Unrelated objects do not wait for a kind that is not there.
	s.do(s.m.AddOnCondition(t.Context(), "widgets", v1alpha1.Applied, "KindNotServed"))
	s.exists(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, "first")
	s.exists(corev1.SchemeGroupVersion.WithKind("ConfigMap"), "plain")
	s.exists(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), "b")

	// The definition comes late, by another hand: no restart, no new commit.
	s.create(definition("gadgets", "Gadget", "v1"))
	s.do(s.m.Ready(t.Context(), first))
	s.exists(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, "late")

	s.fleet.Write("addons/widgets/4-crd.yaml", definition("widgets", "Widget", "v1", "v2"))
	s.fleet.Write("addons/widgets/8-v2.yaml", widget("v2", "Widget", "second"))
	s.do(s.m.Ready(t.Context(), s.fleet.Push("a second version and one that uses it")))
	s.exists(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Widget"}, "second")
}

const service = `apiVersion: v1
kind: Service
metadata: {name: svc, namespace: shop}
spec: {selector: {app: x}, ports: [{name: http, port: 80}]}
`

func TestB09_OneBadObjectLeavesTheOthersAndItselfAlone(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns("{name: base, path: addons/base}")
	s.fleet.Write("addons/base/0-ns.yaml", namespace("shop"))
	for _, name := range []string{"a", "b", "c"} {
		s.fleet.Write("addons/base/"+name+".yaml", configMap(name, "one"))
	}
	s.fleet.Write("addons/base/svc.yaml", service)
	s.join()
	s.do(s.m.Ready(t.Context(), s.fleet.Push("good")))
	svc := &corev1.Service{}
	key := client.ObjectKey{Namespace: "shop", Name: "svc"}
	s.do(s.m.Client.Get(t.Context(), key, svc))
	uid, version := svc.UID, svc.ResourceVersion

	for _, c := range []struct {
		name, text, condition, reason, object string
		others                                string // what the ConfigMaps hold then
	}{
		{"no ports", strings.Replace(service, "[{name: http, port: 80}]", "null", 1), v1alpha1.Applied, "InvalidObject", "Service/shop/svc", "no ports"},
		{"apiVersion misspelt", strings.Replace(service, "apiVersion", "piVersion", 1), v1alpha1.Rendered, "RenderFailed", "", "no ports"},
		{"an unknown kind", strings.Replace(service, "kind: Service", "kind: Servicee", 1), v1alpha1.Applied, "KindNotServed", "Servicee/shop/svc", "an unknown kind"},
		{"broken YAML", strings.Replace(service, "spec:", "  spec:", 1), v1alpha1.Rendered, "RenderFailed", "", "an unknown kind"},
	} {
		s.fleet.Write("addons/base/svc.yaml", c.text)
		s.fleet.Write("addons/base/a.yaml", configMap("a", c.name))
		s.fleet.Push(c.name)
		s.do(s.m.AddOnCondition(t.Context(), "base", c.condition, c.reason))
		s.do(s.m.Reconcile(t.Context()))
		addOn, err := s.m.AddOn(t.Context(), "base")
		s.do(err)
		require.NotEmpty(t, addOn.Status.Failures, c.name)
		failure := addOn.Status.Failures[0]
		assert.Contains(t, failure.File, "addons/base/svc.yaml", c.name)
		if c.object != "" {
			assert.Equal(t, c.object, failure.Object, c.name)
		}
		assert.NotEmpty(t, failure.Message)
		// What can be applied is; what does not render is held as a whole.
		_, err = s.m.ConfigMap(t.Context(), "shop", "a", "value", c.others)
		s.do(err)
		s.do(s.m.Client.Get(t.Context(), key, svc))
		assert.Equal(t, uid, svc.UID, c.name)
		assert.Equal(t, version, svc.ResourceVersion, "%s: the live Service is as it was", c.name)
	}
	s.fleet.Write("addons/base/svc.yaml", service)
	s.do(s.m.Ready(t.Context(), s.fleet.Push("mended")))
}

func TestB10_ABuildThatYieldsNothingOrMuchLessDeletesNothing(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns("{name: base, path: addons/base}", "{name: other, path: addons/other}")
	write := func(namespaces ...string) {
		s.fleet.Remove("addons/base")
		resources := ""
		for _, ns := range namespaces {
			resources += "- " + ns + ".yaml\n"
			text := namespace(ns)
			for i := range 4 {
				text += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm-%d, namespace: %s}\n", i, ns)
			}
			s.fleet.Write("addons/base/"+ns+".yaml", text)
		}
		s.fleet.Write("addons/base/kustomization.yaml", "resources:\n"+resources)
	}
	count := func() int {
		var list corev1.ConfigMapList
		s.do(s.m.Client.List(t.Context(), &list, client.MatchingLabels{"fleetling.dev/addon": "base"}))
		return len(list.Items)
	}
	write("n1", "n2", "n3", "n4")
	s.fleet.Write("addons/other/ns.yaml", namespace("shop"))
	s.fleet.Write("addons/other/a.yaml", configMap("a", "one"))
	s.fleet.Write("addons/other/b.yaml", configMap("b", "one"))
	s.join()
	s.do(s.m.Ready(t.Context(), s.fleet.Push("20 objects in 4 namespaces")))
	require.Equal(t, 16, count())

	s.fleet.Write("addons/base/kustomization.yaml", "resources: []\n")
	s.fleet.Push("resources: []")
	s.do(s.m.AddOnCondition(t.Context(), "base", v1alpha1.Ready, "EmptyRender"))
	s.fleet.Write("addons/base/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n")
	s.fleet.Push("a kustomization of nothing")
	s.do(s.m.Eventually(t.Context(), func(ctx context.Context) error {
		addOn, err := s.m.AddOn(ctx, "base")
		if c := meta.FindStatusCondition(addOn.Status.Conditions, v1alpha1.Rendered); err == nil && (c == nil || c.Status != "False") {
			err = fmt.Errorf("it still renders")
		}
		return err
	}))
	require.Equal(t, 16, count())

	// The same count, all old ones but a quarter gone: a guard that only counts
	// would be fooled. An ordinary delete goes on meanwhile.
	write("n1", "m1", "m2", "m3")
	s.fleet.Remove("addons/other/b.yaml")
	s.fleet.Push("other namespaces")
	s.do(s.m.AddOnCondition(t.Context(), "base", v1alpha1.Held, "PruneHeld"))
	s.do(s.m.Absent(t.Context(), shop("b")))
	addOn, err := s.m.AddOn(t.Context(), "base")
	s.do(err)
	require.NotNil(t, addOn.Status.Held)
	assert.Equal(t, 15, addOn.Status.Held.Count, "3 namespaces and 12 ConfigMaps")
	assert.True(t, strings.HasPrefix(addOn.Status.Held.Digest, "sha256:"))
	assert.NotEmpty(t, addOn.Status.Held.Objects)
	assert.Equal(t, 28, count(), "the new ones are there, the old ones still")

	// Taken back in Git, nothing is held any more.
	write("n1", "n2", "n3", "n4", "m1", "m2", "m3")
	s.do(s.m.Ready(t.Context(), s.fleet.Push("taken back")))
}

func TestB22_WhatTheServerOwnsIsLeftOutAndTyposAreNamed(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns("{name: dump, path: addons/dump}")
	s.fleet.Write("addons/dump/0-ns.yaml", namespace("shop"))
	s.fleet.Write("addons/dump/cm.yaml", `apiVersion: v1
kind: ConfigMap
metadata:
  name: dumped
  namespace: shop
  uid: 11111111-2222-3333-4444-555555555555
  resourceVersion: "1"
  generation: 3
  creationTimestamp: "2020-01-01T00:00:00Z"
  selfLink: /api/v1/namespaces/shop/configmaps/dumped
  managedFields: [{manager: kubectl, operation: Update, apiVersion: v1, time: "2020-01-01T00:00:00Z"}]
data: {value: one}
`)
	s.fleet.Write("addons/dump/deploy.yaml", web+"status: {loadBalancer: {}}\n")
	s.join(withNode)
	s.do(s.m.Ready(t.Context(), s.fleet.Push("dumps")))
	first := s.uids()
	for range 5 {
		s.do(s.m.Reconcile(t.Context()))
		assert.Equal(t, first, s.uids(), "no loop of create and delete")
	}

	for _, c := range []struct{ name, text, condition, reason, words string }{
		{"ownerReferences", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owned, namespace: shop, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: y}]}\n", v1alpha1.Rendered, "RenderFailed", "ownerReferences"},
		{"an unknown field", strings.Replace(web, "selector:", "nodeselector: {}\n  selector:", 1), v1alpha1.Applied, "InvalidObject", "nodeselector"},
		{"a field in the wrong case", strings.Replace(web, "replicas: 2", "Replicas: 2", 1), v1alpha1.Applied, "InvalidObject", "Replicas"},
		{"a kind in the wrong case", "apiVersion: v1\nkind: configmap\nmetadata: {name: small, namespace: shop}\n", v1alpha1.Applied, "KindNotServed", "ConfigMap"},
	} {
		s.fleet.Remove("addons/dump/bad.yaml")
		s.fleet.Write("addons/dump/bad.yaml", strings.ReplaceAll(c.text, "name: web, namespace", "name: bad, namespace"))
		s.fleet.Push(c.name)
		s.do(s.m.Eventually(t.Context(), func(ctx context.Context) error {
			addOn, err := s.m.AddOn(ctx, "dump")
			found := fmt.Sprint(addOn.Status.Failures)
			if err == nil && (!strings.Contains(found, c.words) || !strings.Contains(found, "addons/dump/bad.yaml")) {
				err = fmt.Errorf("%s: not named in %s", c.name, found)
			}
			return err
		}))
		s.do(s.m.AddOnCondition(t.Context(), "dump", c.condition, c.reason))
	}
	s.fleet.Write("addons/dump/crd.yaml", definition("widgets", "Widget", "v1"))
	s.fleet.Write("addons/dump/w.yaml", namespace("w"))
	s.fleet.Write("addons/dump/bad.yaml", strings.Replace(widget("v1", "Widget", "x"), "size: 1", "sise: 1", 1))
	s.fleet.Push("a custom resource with an unknown field")
	s.do(s.m.AddOnCondition(t.Context(), "dump", v1alpha1.Applied, "InvalidObject"))
	assert.Equal(t, first, s.uids())
}

func TestF2_WhatAFailedRevisionMadeIsPrunedWhenItGoes(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns("{name: base, path: addons/base}")
	s.fleet.Write("addons/base/ns.yaml", namespace("shop"))
	s.fleet.Write("addons/base/c1.yaml", configMap("c1", "one"))
	s.fleet.Write("addons/base/web.yaml", strings.Replace(web, "  selector: {matchLabels: {app: web}}\n", "", 1))
	s.join(withNode)
	s.fleet.Push("no selector")
	s.do(s.m.AddOnCondition(t.Context(), "base", v1alpha1.Applied, "InvalidObject"))
	_, err := s.m.ConfigMap(t.Context(), "shop", "c1", "value", "one")
	s.do(err)
	s.fleet.Remove("addons/base/c1.yaml")
	s.fleet.Write("addons/base/web.yaml", web)
	s.do(s.m.Ready(t.Context(), s.fleet.Push("mended, and c1 goes")))
	s.do(s.m.Absent(t.Context(), shop("c1")))
}

func TestF16_APathThatIsGonePrunesNothing(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns("{name: base, path: addons/base}", "{name: last, path: addons/last}")
	s.fleet.Write("addons/base/ns.yaml", namespace("shop"))
	s.fleet.Write("addons/last/cm.yaml", configMap("last", "one"))
	s.join()
	s.do(s.m.Ready(t.Context(), s.fleet.Push("first")))
	before := s.versions()
	s.nothingChangesWhen("PathNotFound", func() {
		s.fleet.Remove("addons/last/cm.yaml") // Git keeps no empty folder
		s.fleet.Push("the last manifest goes")
	})
	self, err := s.m.Self(t.Context())
	s.do(err)
	assert.Contains(t, meta.FindStatusCondition(self.Status.Conditions, v1alpha1.Selected).Message, "addons/last")
	assert.Equal(t, before, s.versions())
}

func TestP1_AFailureStopsPruningInItsAttempt(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns("{name: base, path: addons/base}")
	s.fleet.Write("addons/base/ns.yaml", namespace("shop"))
	for _, name := range []string{"a", "b", "c"} {
		s.fleet.Write("addons/base/"+name+".yaml", configMap(name, "one"))
	}
	s.join()
	s.do(s.m.Ready(t.Context(), s.fleet.Push("a, b, c")))
	before := s.uids()
	s.fleet.Write("addons/base/b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: shop}\ndata: {value: {not: text}}\n")
	s.fleet.Remove("addons/base/c.yaml")
	s.fleet.Push("b is invalid, c is gone")
	s.do(s.m.AddOnCondition(t.Context(), "base", v1alpha1.Applied, "InvalidObject"))
	s.do(s.m.Reconcile(t.Context()))
	assert.Equal(t, before, s.uids())
	s.fleet.Write("addons/base/b.yaml", configMap("b", "two"))
	s.do(s.m.Ready(t.Context(), s.fleet.Push("mended")))
	s.do(s.m.Absent(t.Context(), shop("c")))
}

func TestP5_AnObjectThatMovesBetweenAddOnsChangesItsOwnerAndStays(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns("{name: base, path: addons/base}", "{name: p1, path: addons/p1}", "{name: p2, path: addons/p2}")
	s.fleet.Write("addons/base/ns.yaml", namespace("shop"))
	for _, name := range []string{"forth", "stays-1"} {
		s.fleet.Write("addons/p1/"+name+".yaml", configMap(name, "one"))
	}
	for _, name := range []string{"back", "stays-2"} {
		s.fleet.Write("addons/p2/"+name+".yaml", configMap(name, "one"))
	}
	s.join()
	s.do(s.m.Ready(t.Context(), s.fleet.Push("first")))
	before := s.uids()
	for name, way := range map[string][2]string{"forth": {"p1", "p2"}, "back": {"p2", "p1"}} {
		s.fleet.Remove("addons/" + way[0] + "/" + name + ".yaml")
		s.fleet.Write("addons/"+way[1]+"/"+name+".yaml", configMap(name, "two"))
	}
	s.do(s.m.Ready(t.Context(), s.fleet.Push("both ways in one commit")))
	assert.Equal(t, before, s.uids())
	for name, addOn := range map[string]string{"forth": "p2", "back": "p1"} {
		cm, err := s.m.ConfigMap(t.Context(), "shop", name, "value", "two")
		s.do(err)
		assert.Equal(t, addOn, cm.Labels["fleetling.dev/addon"])
	}
	for _, addOn := range []string{"p1", "p2"} {
		s.do(s.m.Eventually(t.Context(), func(ctx context.Context) error {
			if held, intended := s.inventory(ctx, addOn); held != 2 || intended != 0 {
				return fmt.Errorf("%s holds %d and intends %d", addOn, held, intended)
			}
			return nil
		}))
	}
}

func TestAnObjectOfAnotherOwnerIsLeftAsItIsAndTheOwnerIsNamed(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns("{name: base, path: addons/base}")
	s.fleet.Write("addons/base/ns.yaml", namespace("shop"))
	for _, name := range []string{"theirs", "fluxed", "mine"} {
		s.fleet.Write("addons/base/"+name+".yaml", configMap(name, "ours"))
	}
	s.join(func(o *world.MemberOptions) { o.URL = "http://127.0.0.1:1/nothing" })
	// It has read this configuration: else the next one would be no change.
	s.do(s.m.Condition(t.Context(), v1alpha1.SourceReady, "Unreachable"))
	for _, text := range []string{namespace("shop"), configMap("theirs", "theirs")} {
		s.create(text)
	}
	u := &unstructured.Unstructured{}
	s.do(yaml.Unmarshal([]byte(configMap("fluxed", "ours")), &u.Object))
	s.do(s.m.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kustomize-controller")))
	s.fleet.Push("first")
	s.m.WriteConfig(func(config map[string]any) { config["source"].(map[string]any)["url"] = s.fleet.Server.URL })
	<-s.m.Agent.Ended() // a changed configuration is a graceful end
	s.do(s.m.Agent.Restart(false))

	s.do(s.m.AddOnCondition(t.Context(), "base", v1alpha1.Applied, "OwnedByOther"))
	_, err := s.m.ConfigMap(t.Context(), "shop", "mine", "value", "ours")
	s.do(err)
	addOn, err := s.m.AddOn(t.Context(), "base")
	s.do(err)
	found := fmt.Sprint(addOn.Status.Failures)
	assert.Contains(t, found, `"somebody"`)
	assert.Contains(t, found, "Flux (kustomize-controller)")
	for name, value := range map[string]string{"theirs": "theirs", "fluxed": "ours"} {
		cm, err := s.m.ConfigMap(t.Context(), "shop", name, "value", value)
		s.do(err)
		assert.NotContains(t, cm.Labels, "fleetling.dev/addon", name)
		for _, entry := range cm.ManagedFields {
			assert.NotEqual(t, "fleetling", entry.Manager, name)
		}
	}
	// Deleted by its owner, it is taken.
	s.do(s.m.Client.Delete(t.Context(), shop("theirs")))
	s.do(s.m.Client.Delete(t.Context(), shop("fluxed")))
	for _, name := range []string{"theirs", "fluxed"} {
		_, err := s.m.ConfigMap(t.Context(), "shop", name, "value", "ours")
		s.do(err)
	}
}
