package mainjob_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/harness"
)

// corpus copies a folder of real manifests into the fleet repository. Without
// FLEETLING_CORPORA there are none: the test says so, loudly, and can't run.
func (s *scenario) corpus(name, to string) {
	s.Helper()
	root := os.Getenv("FLEETLING_CORPORA")
	if root == "" {
		s.Skip("NOT RUN: FLEETLING_CORPORA names no folder of real manifests")
	}
	from := filepath.Join(root, name)
	s.do(filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "LICENSE" {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		s.fleet.Write(to+"/"+filepath.ToSlash(relative), string(content))
		return err
	}))
}

// "Converges": 131 in the inventory, none failed, all applied, and what is not
// ready is exactly the APIService that nobody serves.
func TestKubePrometheusConvergesFromOneCommitWithoutARestart(t *testing.T) {
	s := newScenario(t, 1)
	s.corpus("kube-prometheus", "addons/kube-prometheus")
	s.addOns("{name: monitoring, path: addons/kube-prometheus}")
	revision := s.fleet.Push("kube-prometheus")
	s.join(withNode)
	s.do(harness.Eventually(t.Context(), func(ctx context.Context) error {
		addOn, err := s.m.AddOn(ctx, "monitoring")
		if err != nil {
			return err
		}
		return converged(addOn, revision)
	}))
	held, intended := s.inventory(t.Context(), "monitoring")
	assert.Equal(t, []int{131, 0}, []int{held, intended})
}

// converged tells what is missing. An object may count as ready before its
// controller has looked at it, so all of it has to hold at once.
func converged(addOn v1alpha1.AddOn, revision string) error {
	status := addOn.Status
	healthy := meta.FindStatusCondition(status.Conditions, v1alpha1.Healthy)
	switch {
	case status.Revision != revision, status.Objects != v1alpha1.AddOnObjects{Total: 131, Ready: 130, Summary: "130/131"},
		!meta.IsStatusConditionTrue(status.Conditions, v1alpha1.Applied):
	case healthy == nil, !strings.HasPrefix(healthy.Message, "APIService/v1beta1.metrics.k8s.io is"), strings.Contains(healthy.Message, ";"):
	default:
		return nil
	}
	return fmt.Errorf("%+v", status)
}

// inventory counts what the inventory of an add-on holds, and what it only
// intends to.
func (s *scenario) inventory(ctx context.Context, addOn string) (held, intended int) {
	s.Helper()
	var list corev1.ConfigMapList
	s.do(s.m.Client.List(ctx, &list, client.InNamespace("fleetling-system"), client.MatchingLabels{"fleetling.dev/inventory": addOn}))
	for _, cm := range list.Items {
		for line := range strings.Lines(cm.Data["objects"]) {
			if strings.HasPrefix(line, "?") {
				intended++
			} else {
				held++
			}
		}
	}
	return held, intended
}

func TestAnAdmissionPolicyOfALibraryBitesFromTheCommitThatBindsIt(t *testing.T) {
	s := newScenario(t, 1)
	s.corpus("cel-admission-library/controls/C-0057", "policies/privileged")
	s.fleet.Remove("policies/privileged/tests.json")
	s.addOns("{name: shop, path: addons/shop}")
	s.fleet.Write("addons/shop/namespace.yaml", namespace("shop"))
	first := s.fleet.Push("no policy yet")
	s.join()
	s.do(s.m.Ready(t.Context(), first))
	s.do(s.tryPrivileged(t.Context()))

	s.addOns("{name: policies, path: policies}", "{name: shop, path: addons/shop, dependsOn: [policies]}")
	s.fleet.Write("policies/binding.yaml", `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: privileged}
spec:
  policyName: kubescape-c-0057-privileged-container-denied
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, fleetling-system]}]}}
`)
	second := s.fleet.Push("the policy, bound")
	s.do(s.m.Ready(t.Context(), second))
	s.do(harness.Eventually(t.Context(), func(ctx context.Context) error {
		if err := s.tryPrivileged(ctx); err == nil || !strings.Contains(err.Error(), "privileged") {
			return fmt.Errorf("the privileged Pod is not refused: %w", err)
		}
		return nil
	}))
}

// tryPrivileged asks whether a privileged Pod would be taken.
func (s *scenario) tryPrivileged(ctx context.Context) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "root"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "root", Image: "registry.example.com/root:1", SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
		}}},
	}
	return s.m.Client.Create(ctx, pod, client.DryRunAll)
}
