package birth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/world"
)

// The life of one cluster that Cluster API gives birth to, by what ships: each
// part begins where the one before it ended.
func TestAClusterIsBornWithTheAgent(t *testing.T) {
	s := newScenario(t)
	s.run("from a Cluster and the bundle to Ready add-ons of the cluster's labels", (*scenario).born)
	s.run("few requests while it is being born", (*scenario).gentle)
	s.run("the same bundle again changes nothing, here or there", (*scenario).again)
	s.run("a label edited in the entry and delivered is followed", (*scenario).labelEdited)
	s.run("labels that are emptied remove nothing", (*scenario).labelsEmptied)
	s.run("a Git credential is rotated by its Secret", (*scenario).credentialRotated)
	s.run("a pause holds the agent's hands, and says what waits", (*scenario).paused)
	s.run("Services wait for default/kubernetes", (*scenario).withheld)
	s.run("ClusterResourceSets that are deleted leave the agent", (*scenario).setsDeleted)
	s.run("an API server that is away for a minute is waited for", (*scenario).away)
	s.run("a cluster of the same name is born anew, and its identity comes late", (*scenario).reborn)
	s.run("the agent is upgraded by Git, last of all", (*scenario).upgraded)
	s.run("a broken image of the agent replaces no good one, and is named", (*scenario).brokenImage)
	s.run("the next image does, and the way back is open", (*scenario).mended)
	s.run("without the management cluster all goes on", (*scenario).alone)
}

func (s *scenario) born() {
	first := s.push("first")
	s.deliver()
	s.do(s.management.Bear(s.Context(), s.entry(), s.workload.Cluster))
	s.do(s.management.Delivered(s.Context(), name, 3))
	s.startAgent()
	s.do(s.workload.Ready(s.Context(), first))
	for _, addOn := range []string{"policies", "platform", "canary"} {
		s.do(s.workload.AddOnReady(s.Context(), addOn, first))
	}
	s.has("region", "ap-south")
	s.has("canary", "yes")

	self, err := s.workload.Self(s.Context())
	s.do(err)
	require.NotNil(s, self.Status.Birth)
	assert.NotNil(s, self.Status.Birth.Ready)
	assert.Equal(s, image, s.kubelet.Pod().Image())
	s.do(s.kubelet.Pod().Probes(s.Context()))
}

// gentle counts the requests that the agent made in its first minute. A watch
// is written to the audit log when it ends: so the agent is ended first.
func (s *scenario) gentle() {
	start := s.kubelet.Pod().Started()[0]
	minute := time.NewTimer(time.Until(start.Add(time.Minute)))
	defer minute.Stop()
	select {
	case <-minute.C:
	case <-s.Context().Done():
	}
	s.crash()
	events, err := s.workload.Audit(s.Context(), world.User)
	s.do(err)
	var times []time.Duration
	for _, e := range events {
		if after := e.RequestReceived.Sub(start); after >= 0 && after < time.Minute {
			times = append(times, after)
		}
	}
	slices.Sort(times)
	s.Logf("requests in the first minute: %d; in its fullest second %d", len(times), fullest(times, time.Second))
	assert.NotEmpty(s, times)
	// Over five seconds: on a busy machine some come late and together.
	assert.LessOrEqual(s, fullest(times, 5*time.Second), 5*5, "at most five a second")
	s.kubeadmIsDone()
}

// fullest gives the most of sorted times that lie within a window.
func fullest(times []time.Duration, window time.Duration) int {
	most, first := 0, 0
	for last, at := range times {
		for at-times[first] >= window {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// kubeadmIsDone writes what kubeadm uploads last: from here on the agent need
// not be gentle.
func (s *scenario) kubeadmIsDone() {
	s.Helper()
	s.do(s.workload.Client.Create(s.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"}}))
}

func (s *scenario) again() {
	s.do(s.workload.Ready(s.Context(), s.repo.Head()))
	bundle := s.bundle()
	plain := s.render("--plain", name)
	atManagement, atWorkload := s.versions(s.management.Client, bundle), s.versions(s.workload.Client, plain)
	started := len(s.kubelet.Pod().Started())

	s.do(s.management.Apply(s.Context(), bundle...))
	s.do(s.management.Apply(s.Context(), bundle...))
	for _, o := range plain {
		text, err := json.Marshal(o.Object)
		s.do(err)
		s.do(s.workload.Client.Patch(s.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, text)))
	}
	// A pass of the agent and what it had to be told, past both.
	s.do(s.workload.Reconcile(s.Context()))
	s.do(s.management.Delivered(s.Context(), name, 3))
	if diff := cmp.Diff(atManagement, s.versions(s.management.Client, bundle)); diff != "" {
		s.Errorf("management cluster (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(atWorkload, s.versions(s.workload.Client, plain)); diff != "" {
		s.Errorf("workload cluster (-want +got):\n%s", diff)
	}
	assert.Len(s, s.kubelet.Pod().Started(), started, "the agent went on")
}

// versions gives UID, generation and resourceVersion of objects.
func (s *scenario) versions(c client.Client, objects []*unstructured.Unstructured) map[string]string {
	s.Helper()
	versions := map[string]string{}
	for _, o := range objects {
		live := o.DeepCopy()
		s.do(c.Get(s.Context(), client.ObjectKeyFromObject(o), live))
		version := live.GetResourceVersion()
		if o.GetKind() == "Deployment" {
			version = "" // its status moves by itself
		}
		versions[o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName()] = fmt.Sprint(live.GetUID(), live.GetGeneration(), version)
	}
	return versions
}

func (s *scenario) labelEdited() {
	s.relabel("region: ap-south", "region: eu-west")
	moved := s.push("to eu-west")
	s.do(s.workload.Ready(s.Context(), moved))
	s.has("region", "eu-west")
	s.do(s.workload.Condition(s.Context(), v1alpha1.Selected, "IdentityDiffers"))

	s.deliver()
	s.do(s.management.Bear(s.Context(), s.entry(), s.workload.Cluster))
	s.do(s.workload.Condition(s.Context(), v1alpha1.Selected, "Selected"))
	s.has("region", "eu-west")
}

func (s *scenario) labelsEmptied() {
	before := s.shop()
	source := &corev1.ConfigMap{}
	s.do(s.management.Client.Get(s.Context(), client.ObjectKey{Namespace: "default", Name: "fleetling-identity-" + name}, source))
	whole := source.DeepCopy()
	source.Data["identity.yaml"] = identity("    labels: {}\n")
	s.do(s.management.Client.Update(s.Context(), source))
	s.do(s.workload.Condition(s.Context(), v1alpha1.Selected, "IdentityDiffers"))
	s.do(s.workload.Reconcile(s.Context()))
	s.crash()
	s.do(s.workload.Reconcile(s.Context()))
	assert.Equal(s, before, s.shop(), "nothing was touched")

	source.Data = whole.Data
	s.do(s.management.Client.Update(s.Context(), source))
	s.do(s.workload.Condition(s.Context(), v1alpha1.Selected, "Selected"))
	assert.Equal(s, before, s.shop())
}

// identity is a delivered one by hand.
func identity(labels string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: fleetling-identity, namespace: fleetling-system}\ndata:\n  identity.yaml: |\n" +
		"    apiVersion: config.fleetling.dev/v1alpha1\n    kind: Identity\n    name: " + name + "\n    clusterSet: prod\n" + labels
}

// shop gives what the fleet has put into namespace shop.
func (s *scenario) shop() map[string]string {
	s.Helper()
	var list corev1.ConfigMapList
	s.do(s.workload.Client.List(s.Context(), &list, client.InNamespace("shop"), client.HasLabels{"fleetling.dev/addon"}))
	versions := map[string]string{}
	for _, cm := range list.Items {
		versions[cm.Name] = string(cm.UID) + " " + cm.ResourceVersion
	}
	require.NotEmpty(s, versions)
	return versions
}

func (s *scenario) credentialRotated() {
	s.server.SetPassword("swordfish")
	s.do(s.workload.Condition(s.Context(), v1alpha1.SourceReady, "AuthenticationFailed"))
	s.writeCredentials("swordfish")
	s.deliver()
	s.do(s.workload.Condition(s.Context(), v1alpha1.SourceReady, "Fetched"))
	s.change("by the new credential")
}

func (s *scenario) paused() {
	s.fleetling("pause", "--kubeconfig", s.workload.KubeconfigFile(), "--for", "2h", "--reason", "fire drill")
	s.do(s.workload.Condition(s.Context(), v1alpha1.Paused, "Paused"))
	byHand := &corev1.ConfigMap{}
	s.do(s.workload.Client.Get(s.Context(), client.ObjectKey{Namespace: "shop", Name: "shared"}, byHand))
	byHand.Data["value"] = "by hand"
	s.do(s.workload.Client.Update(s.Context(), byHand))
	s.value("addons/canary/canary.yaml", "canary", "after the pause")
	next := s.push("during a pause")
	s.do(s.workload.Eventually(s.Context(), func(ctx context.Context) error {
		self, err := s.workload.Self(ctx)
		if err == nil && (self.Status.Revision == nil || self.Status.Revision.Commit != next) {
			err = fmt.Errorf("it has verified %+v", self.Status.Revision)
		}
		return err
	}))
	for _, addOn := range []string{"platform", "canary"} {
		s.do(s.workload.AddOnCondition(s.Context(), addOn, v1alpha1.Applied, "Paused"))
	}
	before := s.shop()
	s.do(s.workload.Reconcile(s.Context()))
	assert.Equal(s, before, s.shop(), "it looks, and touches nothing")
	s.has("shared", "by hand")

	s.fleetling("pause", "--kubeconfig", s.workload.KubeconfigFile(), "--end")
	s.do(s.workload.Ready(s.Context(), next))
	s.has("shared", "by the new credential")
	s.has("canary", "after the pause")
}

// withheld has the API server not bring the first Service back, as it is before
// the cluster's first one.
func (s *scenario) withheld() {
	undo := s.forbidFirstService()
	first := types.NamespacedName{Namespace: "default", Name: "kubernetes"}
	s.do(s.workload.Client.Delete(s.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: first.Name}}))
	// It has seen the Service: a new process has not.
	s.crash()

	s.value("addons/canary/canary.yaml", "canary", "beside a Service")
	s.repo.Write("addons/canary/service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: front, namespace: shop}\nspec: {ports: [{port: 80}]}\n")
	with := s.push("a Service")
	s.has("canary", "beside a Service")
	s.do(s.workload.Eventually(s.Context(), func(ctx context.Context) error {
		addOn, err := s.workload.AddOn(ctx, "canary")
		if err != nil {
			return err
		}
		text, err := json.Marshal(addOn.Status)
		if err == nil && !strings.Contains(string(text), "default/kubernetes") {
			err = fmt.Errorf("it does not say what it waits for: %s", text)
		}
		return err
	}))
	s.do(s.workload.Reconcile(s.Context()))
	front := &corev1.Service{}
	err := s.workload.Client.Get(s.Context(), client.ObjectKey{Namespace: "shop", Name: "front"}, front)
	assert.True(s, apierrors.IsNotFound(err), "%v", err)
	err = s.workload.Client.Get(s.Context(), first, &corev1.Service{})
	assert.True(s, apierrors.IsNotFound(err), "it was withheld all the time: %v", err)

	undo()
	s.do(s.workload.Ready(s.Context(), with))
	s.do(s.workload.Client.Get(s.Context(), client.ObjectKey{Namespace: "shop", Name: "front"}, front))
	s.do(s.workload.Client.Get(s.Context(), first, &corev1.Service{}))
}

// forbidFirstService denies it to everybody, the API server included, and waits
// until that holds.
func (s *scenario) forbidFirstService() (undo func()) {
	s.Helper()
	meta := metav1.ObjectMeta{Name: "withheld"}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
			},
		}}},
		Validations: []admissionv1.Validation{{Expression: "object.metadata.namespace != 'default'"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: "withheld", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	s.do(s.workload.Client.Create(s.Context(), policy))
	s.do(s.workload.Client.Create(s.Context(), binding))
	s.do(harness.Eventually(s.Context(), func(ctx context.Context) error {
		try := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "try"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
		if err := s.workload.Client.Create(ctx, try, client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("not denied yet: %w", err)
		}
		return nil
	}))
	return func() {
		s.do(s.workload.Client.Delete(s.Context(), binding))
		s.do(s.workload.Client.Delete(s.Context(), policy))
	}
}

func (s *scenario) setsDeleted() {
	bundle := s.bundle()
	for _, o := range bundle {
		if o.GetKind() == "ClusterResourceSet" {
			s.do(s.management.Client.Delete(s.Context(), o.DeepCopy()))
		}
	}
	for _, o := range bundle {
		s.gone(s.management.Client, o)
	}
	s.change("after the sets are gone")

	// Made again, they find all there and leave it.
	plain := s.render("--plain", name)
	versions := s.versions(s.workload.Client, plain)
	s.deliver()
	s.do(s.management.Delivered(s.Context(), name, 3))
	assert.Equal(s, versions, s.versions(s.workload.Client, plain))
}

func (s *scenario) away() {
	before := s.shop()
	s.workload.Pause()
	s.value("addons/base/shared.yaml", "shared", "while the API server was away")
	next := s.push("while it was away")
	minute := time.NewTimer(time.Minute)
	defer minute.Stop()
	select {
	case <-minute.C:
	case <-s.Context().Done():
	}
	s.do(s.workload.Resume(s.Context()))
	s.do(s.workload.Ready(s.Context(), next))
	s.has("shared", "while the API server was away")
	after := s.shop()
	assert.Equal(s, before["region"], after["region"], "what is the same was not written")
}

// reborn deletes the cluster and has another one made of the same entry.
func (s *scenario) reborn() {
	var late []*unstructured.Unstructured
	for _, o := range s.bundle() {
		if o.GetName() != "fleetling-identity-"+name {
			continue
		}
		if o.GetKind() == "ClusterResourceSet" {
			s.do(s.management.Client.Delete(s.Context(), o.DeepCopy()))
		}
		late = append(late, o)
	}
	for _, o := range late {
		s.gone(s.management.Client, o)
	}
	s.kubelet.Stop()
	s.do(s.management.Forget(s.Context(), name))
	s.workload.Stop()
	s.startWorkload()
	s.do(s.management.Bear(s.Context(), s.entry(), s.workload.Cluster))
	s.do(s.management.Delivered(s.Context(), name, 2))
	s.startAgent()
	s.kubeadmIsDone()
	s.do(s.workload.Condition(s.Context(), v1alpha1.Selected, "IdentityMissing"))
	s.do(s.workload.Condition(s.Context(), v1alpha1.Verified, "Verified"))
	err := s.workload.Client.Get(s.Context(), client.ObjectKey{Name: "shop"}, &corev1.Namespace{})
	assert.True(s, apierrors.IsNotFound(err), "nothing is applied before it is known for whom: %v", err)

	s.deliver()
	s.do(s.management.Delivered(s.Context(), name, 3))
	s.do(s.workload.Ready(s.Context(), s.repo.Head()))
	s.has("region", "eu-west")
}

func (s *scenario) alone() {
	s.management.Stop()
	s.change("nobody manages")
	s.crash()
	s.change("nobody manages, after a crash")
}
