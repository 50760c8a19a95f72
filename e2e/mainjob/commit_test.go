package mainjob_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/world"
)

const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.example.com/web:1}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
`

// withNode gives the member a node, so that Pods become ready.
func withNode(o *world.MemberOptions) { o.Node = netip.MustParsePrefix("10.244.0.0/24") }

func TestASignedCommitBecomesTheStateOfTheCluster(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns("{name: base, path: addons/base}", "{name: web, path: addons/web, dependsOn: [base]}")
	s.fleet.Write("addons/base/namespace.yaml", namespace("shop"))
	for i := range 7 {
		s.fleet.Write(fmt.Sprintf("addons/base/cm-%d.yaml", i), configMap(fmt.Sprint("cm-", i), "one"))
	}
	s.fleet.Write("addons/web/web.yaml", web)
	first := s.fleet.Push("first")
	s.join(withNode)
	s.do(s.m.Ready(t.Context(), first))

	s.statusIsRight(first)
	s.theStatusCommandSaysSo(first)
	s.aQuietPassAsksNothing()
	s.aRemovedFilePrunesThatObjectOnly()
	s.handMadeChangesAreRepaired()
	s.noEventsOfTroubleAndNoStrays()
}

func (s *scenario) statusIsRight(revision string) {
	s.Helper()
	self, err := s.m.Self(s.Context())
	s.do(err)
	status := self.Status
	assert.Equal(s, "one", status.Identity.Name)
	assert.Equal(s, []v1alpha1.Label{{Key: "region", Value: "ap-south", Origin: "entry"}}, status.Identity.Labels)
	assert.Equal(s, revision, status.Revision.Commit)
	assert.Equal(s, "founder", status.Revision.Signer)
	assert.True(s, strings.HasPrefix(status.Revision.Fingerprint, "SHA256:"))
	assert.Equal(s, v1alpha1.Count{Total: 2, Ready: 2, Summary: "2/2"}, status.AddOns)
	assert.Equal(s, v1alpha1.ObjectCount{Total: 10, Ready: 10}, status.Objects)
	addOn, err := s.m.AddOn(s.Context(), "web")
	s.do(err)
	assert.Equal(s, revision, addOn.Status.Revision)
	assert.Equal(s, "2/2", addOn.Status.Objects.Summary)
	assert.True(s, meta.IsStatusConditionTrue(addOn.Status.Conditions, v1alpha1.Ready))
	deployment := &appsv1.Deployment{}
	s.do(s.m.Client.Get(s.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, deployment))
	assert.Equal(s, int32(2), deployment.Status.AvailableReplicas)
	assert.Equal(s, "web", deployment.Labels["fleetling.dev/addon"])
}

func (s *scenario) theStatusCommandSaysSo(revision string) {
	s.Helper()
	text, code, err := s.m.Fleetling(s.Context(), "status")
	s.do(err)
	assert.Zero(s, code, text)
	for _, want := range []string{"one (ClusterSet prod)", revision[:12], "signed by founder", "base", "8/8", "web", "2/2"} {
		assert.Contains(s, text, want)
	}
	text, code, err = s.m.Fleetling(s.Context(), "status", "-o", "json")
	s.do(err)
	assert.Zero(s, code)
	var seen struct{ Member v1alpha1.Member }
	s.do(json.Unmarshal([]byte(text), &seen))
	assert.Equal(s, revision, seen.Member.Status.AppliedRevision)
}

// aQuietPassAsksNothing: by the audit log of the agent's user.
func (s *scenario) aQuietPassAsksNothing() {
	s.Helper()
	s.rest()
	before, err := s.m.Audit(s.Context(), world.User)
	s.do(err)
	s.do(s.m.Reconcile(s.Context()))
	after, err := s.m.Audit(s.Context(), world.User)
	s.do(err)
	var asked []string
	for _, e := range after[len(before):] {
		lease := e.ObjectRef != nil && e.ObjectRef.Resource == "leases"
		if !lease && e.Verb != "watch" {
			asked = append(asked, e.Verb+" "+e.RequestURI)
		}
	}
	require.Len(s, asked, 1, "%v", asked)
	assert.Contains(s, asked[0], "patch /apis/fleetling.dev/v1alpha1/members/self/status", "the echo")
}

// rest waits until the agent has written nothing but its Lease for a while: two
// renewals of it.
func (s *scenario) rest() {
	s.Helper()
	last, calm := -1, 0
	s.do(harness.Eventually(s.Context(), func(ctx context.Context) error {
		events, err := s.m.Audit(ctx, world.User)
		if err != nil {
			return err
		}
		other, renewals := 0, 0
		for _, e := range events {
			if e.ObjectRef != nil && e.ObjectRef.Resource == "leases" {
				renewals++
			} else {
				other++
			}
		}
		if other != last {
			last, calm = other, renewals
		}
		if renewals < calm+2 {
			return fmt.Errorf("the agent is still at work")
		}
		return nil
	}))
}

func (s *scenario) uids() map[string]string {
	s.Helper()
	var list corev1.ConfigMapList
	s.do(s.m.Client.List(s.Context(), &list, client.InNamespace("shop"), client.HasLabels{"fleetling.dev/addon"}))
	uids := map[string]string{}
	for _, cm := range list.Items {
		uids[cm.Name] = string(cm.UID)
	}
	return uids
}

func (s *scenario) aRemovedFilePrunesThatObjectOnly() {
	s.Helper()
	before := s.uids()
	s.fleet.Remove("addons/base/cm-3.yaml")
	second := s.fleet.Push("cm-3 goes")
	s.do(s.m.Absent(s.Context(), shop("cm-3")))
	s.do(s.m.Ready(s.Context(), second))
	delete(before, "cm-3")
	assert.Equal(s, before, s.uids(), "all others are what they were")
}

func (s *scenario) handMadeChangesAreRepaired() {
	s.Helper()
	edited := shop("cm-1")
	s.do(s.m.Client.Get(s.Context(), client.ObjectKeyFromObject(edited), edited))
	edited.Data["value"] = "by hand"
	s.do(s.m.Client.Update(s.Context(), edited, client.FieldOwner("kubectl-edit")))
	_, err := s.m.ConfigMap(s.Context(), "shop", "cm-1", "value", "one")
	s.do(err)

	unlabelled := shop("cm-4")
	s.do(s.m.Client.Get(s.Context(), client.ObjectKeyFromObject(unlabelled), unlabelled))
	unlabelled.Labels = nil
	s.do(s.m.Client.Update(s.Context(), unlabelled, client.FieldOwner("kubectl-label")))
	s.do(harness.Eventually(s.Context(), func(ctx context.Context) error {
		cm := shop("cm-4")
		if err := s.m.Client.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
			return err
		}
		if cm.Labels["fleetling.dev/addon"] != "base" {
			return fmt.Errorf("the label is not back: %v", cm.Labels)
		}
		return nil
	}))

	s.do(s.m.Client.Delete(s.Context(), shop("cm-2")))
	_, err = s.m.ConfigMap(s.Context(), "shop", "cm-2", "value", "one")
	s.do(err)

	deployment := &appsv1.Deployment{}
	s.do(s.m.Client.Get(s.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, deployment))
	*deployment.Spec.Replicas = 0
	s.do(s.m.Client.Update(s.Context(), deployment, client.FieldOwner("somebody")))
	s.do(harness.Eventually(s.Context(), func(ctx context.Context) error {
		if err := s.m.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		if deployment.Status.AvailableReplicas != 2 {
			return fmt.Errorf("%d replicas are available", deployment.Status.AvailableReplicas)
		}
		return nil
	}))
}

func (s *scenario) noEventsOfTroubleAndNoStrays() {
	s.Helper()
	self, err := s.m.Self(s.Context())
	s.do(err)
	assert.Empty(s, self.Status.Strays)
	var gone corev1.ConfigMap
	err = s.m.Client.Get(s.Context(), client.ObjectKey{Namespace: "shop", Name: "cm-3"}, &gone)
	assert.True(s, apierrors.IsNotFound(err), "%v", err)
}
