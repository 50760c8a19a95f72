package mainjob_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/world"
)

// Two clusters, two overlays, of one repository; then B13, a label that changes.
func TestLabelsOfTheSignedEntryChooseTheOverlay(t *testing.T) {
	s := newScenario(t, 2)
	s.addOns(`{name: platform, path: "addons/overlays/{{labels.region}}"}`)
	s.entry("one", "ap-south")
	s.entry("two", "eu-west")
	s.fleet.Write("addons/base/kustomization.yaml", "resources: [namespace.yaml, shared.yaml]\n")
	s.fleet.Write("addons/base/namespace.yaml", namespace("shop"))
	s.fleet.Write("addons/base/shared.yaml", configMap("shared", "same"))
	for _, region := range []string{"ap-south", "eu-west"} {
		s.fleet.Write("addons/overlays/"+region+"/kustomization.yaml", "resources: [../../base, region.yaml, only.yaml]\n")
		s.fleet.Write("addons/overlays/"+region+"/region.yaml", configMap("region", region))
		s.fleet.Write("addons/overlays/"+region+"/only.yaml", configMap("only-"+region, region))
	}
	first := s.fleet.Push("two regions")
	one := s.member("one")
	two := s.member("two", func(o *world.MemberOptions) { o.Labels = map[string]string{"region": "eu-west"} })
	s.m = one
	s.do(one.Ready(t.Context(), first))
	s.do(two.Ready(t.Context(), first))
	for m, region := range map[*world.Member]string{one: "ap-south", two: "eu-west"} {
		_, err := m.ConfigMap(t.Context(), "shop", "region", "value", region)
		s.do(err)
		_, err = m.ConfigMap(t.Context(), "shop", "only-"+region, "value", region)
		s.do(err)
	}
	selfOne, err := one.Self(t.Context())
	s.do(err)
	selfTwo, err := two.Self(t.Context())
	s.do(err)
	assert.NotEqual(t, selfOne.Status.SelectionDigest, selfTwo.Status.SelectionDigest)

	// The entry changes the region: what both overlays share is the same object,
	// what has other content is changed in place, what only the old one has goes.
	shared, region := uid(s, one, "shared"), uid(s, one, "region")
	s.entry("one", "eu-west")
	second := s.fleet.Push("one moves")
	s.do(one.Ready(t.Context(), second))
	_, err = one.ConfigMap(t.Context(), "shop", "region", "value", "eu-west")
	s.do(err)
	_, err = one.ConfigMap(t.Context(), "shop", "only-eu-west", "value", "eu-west")
	s.do(err)
	s.do(one.Absent(t.Context(), shop("only-ap-south")))
	assert.Equal(t, []types.UID{shared, region}, []types.UID{uid(s, one, "shared"), uid(s, one, "region")})
	// The identity still says ap-south: said, and not followed.
	s.do(one.Condition(t.Context(), v1alpha1.Selected, "IdentityDiffers"))

	s.nothingChangesWhen("NotListed", func() {
		s.fleet.Remove("clusters/one.yaml")
		s.fleet.Push("the entry is gone")
	})
	s.entry("one", "eu-west")
	s.do(one.Ready(t.Context(), s.fleet.Push("the entry is back")))

	before := s.versions()
	one.WriteIdentity(nil)
	s.do(one.Condition(t.Context(), v1alpha1.Selected, "IdentityDiffers"))
	s.do(one.Reconcile(t.Context()))
	one.RemoveIdentity()
	s.do(one.Condition(t.Context(), v1alpha1.Selected, "IdentityMissing"))
	assert.Equal(t, before, s.versions())
}

// nothingChangesWhen lets something go wrong, waits until it is said, and
// compares what is in the cluster.
func (s *scenario) nothingChangesWhen(reason string, spoil func()) {
	s.Helper()
	before := s.versions()
	spoil()
	s.do(s.m.Condition(s.Context(), v1alpha1.Selected, reason))
	s.do(s.m.Reconcile(s.Context()))
	assert.Equal(s, before, s.versions())
}

// versions gives the resourceVersion of each of our ConfigMaps in namespace shop.
func (s *scenario) versions() map[string]string {
	s.Helper()
	var list corev1.ConfigMapList
	s.do(s.m.Client.List(s.Context(), &list, client.InNamespace("shop"), client.HasLabels{"fleetling.dev/addon"}))
	versions := map[string]string{}
	for _, cm := range list.Items {
		versions[cm.Name] = string(cm.UID) + " " + cm.ResourceVersion
	}
	return versions
}

// An identity that was never listed goes by its own labels, and loses nothing
// when they are emptied.
func TestAnUnlistedClusterKeepsWhatItHasWhenItsLabelsAreEmptied(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns(`{name: platform, path: addons/platform, when: {matchLabels: {region: ap-south}}}`, `{name: base, path: addons/base}`)
	s.fleet.Remove("clusters/one.yaml")
	s.entry("another", "eu-west")
	s.fleet.Write("addons/base/namespace.yaml", namespace("shop"))
	s.fleet.Write("addons/platform/cm.yaml", configMap("platform", "here"))
	first := s.fleet.Push("first")
	s.join()
	s.do(s.m.Ready(t.Context(), first))
	before := s.versions()
	s.m.WriteIdentity(nil)
	s.do(s.m.Condition(t.Context(), v1alpha1.Selected, "IdentityDiffers"))
	s.do(s.m.Reconcile(t.Context()))
	s.do(s.m.Agent.Restart(true))
	s.do(s.m.Reconcile(t.Context()))
	s.do(s.m.Condition(t.Context(), v1alpha1.Selected, "IdentityDiffers"))
	assert.Equal(t, before, s.versions(), "after a restart, too")

	s.m.WriteIdentity(map[string]string{"region": "ap-south"})
	s.do(s.m.Condition(t.Context(), v1alpha1.Selected, "Selected"))
	assert.Equal(t, before, s.versions())
}
