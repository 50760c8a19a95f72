package node_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/fleetling/fleetling/e2e/node"
)

func TestNodeIsReadyAndAlive(t *testing.T) {
	got, err := client.CoreV1().Nodes().Get(t.Context(), "fake", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, got.Spec.Taints)
	assert.Equal(t, podCIDR.String(), got.Spec.PodCIDR)
	assert.Equal(t, "10.250.0.1", got.Status.Addresses[0].Address)
	assert.Contains(t, got.Status.Conditions[0].Message, "no container runs")

	renewed := func(ctx context.Context) (metav1.MicroTime, error) {
		lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, "fake", metav1.GetOptions{})
		if err != nil {
			return metav1.MicroTime{}, err
		}
		return *lease.Spec.RenewTime, nil
	}
	first, err := renewed(t.Context())
	require.NoError(t, err)
	eventually(t, func(ctx context.Context) error {
		now, err := renewed(ctx)
		if err == nil && !first.Before(&now) {
			err = errors.New("not renewed")
		}
		return err
	})
}

func TestNodeThatWasGivenUpComesBack(t *testing.T) {
	require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		lost, err := client.CoreV1().Nodes().Get(t.Context(), "fake", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range lost.Status.Conditions {
			lost.Status.Conditions[i].Status = corev1.ConditionUnknown
		}
		_, err = client.CoreV1().Nodes().UpdateStatus(t.Context(), lost, metav1.UpdateOptions{})
		return err
	}))
	eventually(t, func(ctx context.Context) error {
		got, err := client.CoreV1().Nodes().Get(ctx, "fake", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if last := got.Status.Conditions[len(got.Status.Conditions)-1]; last.Status != corev1.ConditionTrue || len(got.Spec.Taints) > 0 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
}

func TestDeploymentBecomesAvailableWithEndpoints(t *testing.T) {
	ns := namespace(t)
	_, err := client.AppsV1().Deployments(ns).Create(t.Context(), deployment("web", 3), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.CoreV1().Services(ns).Create(t.Context(), &corev1.Service{
		ObjectMeta: meta("web"),
		Spec:       corev1.ServiceSpec{Selector: meta("web").Labels, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, func(ctx context.Context) error {
		got, err := client.AppsV1().Deployments(ns).Get(ctx, "web", metav1.GetOptions{})
		if err == nil && got.Status.AvailableReplicas != 3 {
			err = fmt.Errorf("%+v", got.Status)
		}
		return err
	})
	addresses := map[string]bool{}
	eventually(t, func(ctx context.Context) error {
		slices, err := client.DiscoveryV1().EndpointSlices(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		clear(addresses)
		for _, slice := range slices.Items {
			addReady(addresses, slice)
		}
		if len(addresses) != 3 {
			return fmt.Errorf("%v", addresses)
		}
		return nil
	})
	for address := range addresses {
		assert.True(t, podCIDR.Contains(netip.MustParseAddr(address)), address)
		assert.NotEqual(t, "10.250.0.1", address, "the node's own")
	}
}

func addReady(addresses map[string]bool, slice discoveryv1.EndpointSlice) {
	for _, endpoint := range slice.Endpoints {
		if *endpoint.Conditions.Ready {
			addresses[endpoint.Addresses[0]] = true
		}
	}
}

func TestDaemonSetHasItsPodHere(t *testing.T) {
	ns := namespace(t)
	_, err := client.AppsV1().DaemonSets(ns).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: meta("agent"),
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: meta("agent").Labels}, Template: template("agent")},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, func(ctx context.Context) error {
		got, err := client.AppsV1().DaemonSets(ns).Get(ctx, "agent", metav1.GetOptions{})
		if err == nil && (got.Status.DesiredNumberScheduled != 1 || got.Status.NumberAvailable != 1) {
			err = fmt.Errorf("%+v", got.Status)
		}
		return err
	})
}

func TestStatefulSetStartsItsPodsInOrder(t *testing.T) {
	ns := namespace(t)
	replicas := int32(2)
	_, err := client.AppsV1().StatefulSets(ns).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: meta("db"),
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: meta("db").Labels}, Template: template("db"),
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	awaitPod(t, ns, "db-1", ready)
	awaitPod(t, ns, "db-0", ready)
}

func TestJobIsDone(t *testing.T) {
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure} {
		t.Run(string(policy), func(t *testing.T) {
			ns := namespace(t)
			job := &batchv1.Job{ObjectMeta: meta("migrate"), Spec: batchv1.JobSpec{Template: template("migrate")}}
			job.Spec.Template.Spec.RestartPolicy = policy
			_, err := client.BatchV1().Jobs(ns).Create(t.Context(), job, metav1.CreateOptions{})
			require.NoError(t, err)
			eventually(t, func(ctx context.Context) error {
				got, err := client.BatchV1().Jobs(ns).Get(ctx, "migrate", metav1.GetOptions{})
				if err == nil && (got.Status.CompletionTime == nil || got.Status.Succeeded != 1) {
					err = fmt.Errorf("%+v", got.Status)
				}
				return err
			})
		})
	}
}

func TestNamespaceWithPodsIsDeleted(t *testing.T) {
	ns := namespace(t)
	createPod(t, ns, pod("inside"))
	awaitPod(t, ns, "inside", ready)
	require.NoError(t, client.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}))
	eventually(t, func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("still there: %w", err)
	})
}

func TestPodThatHasAFinalizerIsRemovedOnce(t *testing.T) {
	ns := namespace(t)
	held := pod("held")
	held.Finalizers = []string{"example.com/hold"}
	createPod(t, ns, held)
	awaitPod(t, ns, "held", ready)
	require.NoError(t, client.CoreV1().Pods(ns).Delete(t.Context(), "held", metav1.DeleteOptions{}))
	awaitPod(t, ns, "held", func(p *corev1.Pod) bool {
		return p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
	})
	// Whatever is done after it comes after all that was done for the Pod.
	createPod(t, ns, pod("next"))
	awaitPod(t, ns, "next", ready)
	deletes := 0
	events, err := shared.Audit(t.Context(), "admin")
	require.NoError(t, err)
	for _, e := range events {
		if e.Verb == "delete" && e.ObjectRef.Namespace == ns && e.ObjectRef.Name == "held" {
			deletes++
		}
	}
	assert.Equal(t, 2, deletes, "the test's and the node's")
	_, err = client.CoreV1().Pods(ns).Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

func TestPodThatFitsNowhereStaysPending(t *testing.T) {
	ns := namespace(t)
	picky, fitting := pod("picky"), pod("fitting")
	picky.Spec.NodeSelector = map[string]string{"disk": "tape"}
	fitting.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	gated := pod("gated")
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
	for _, p := range []*corev1.Pod{picky, gated, fitting} {
		createPod(t, ns, p)
	}
	awaitPod(t, ns, "fitting", ready)
	for _, name := range []string{"picky", "gated"} {
		got := awaitPod(t, ns, name, func(*corev1.Pod) bool { return true })
		assert.Empty(t, got.Spec.NodeName, name)
		assert.Equal(t, corev1.PodPending, got.Status.Phase, name)
	}
	_, err := client.CoreV1().Pods(ns).Patch(t.Context(), "gated", types.MergePatchType, []byte(`{"spec":{"schedulingGates":[]}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	awaitPod(t, ns, "gated", ready)
}

func TestImageThatCanNotBePulledIsMended(t *testing.T) {
	ns := namespace(t)
	broken := pod("broken")
	broken.Spec.Containers[0].Image = "registry.invalid:5000/app:1"
	createPod(t, ns, broken)
	got := awaitPod(t, ns, "broken", func(p *corev1.Pod) bool { return len(p.Status.ContainerStatuses) == 1 })
	assert.Equal(t, corev1.PodPending, got.Status.Phase)
	assert.Equal(t, "ImagePullBackOff", got.Status.ContainerStatuses[0].State.Waiting.Reason)
	assert.False(t, ready(got))

	_, err := client.CoreV1().Pods(ns).Patch(t.Context(), "broken", types.StrategicMergePatchType,
		[]byte(`{"spec":{"containers":[{"name":"app","image":"registry.example.com/app:1"}]}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	awaitPod(t, ns, "broken", ready)
}

func TestReadinessGateIsWaitedFor(t *testing.T) {
	ns := namespace(t)
	gated := pod("gated")
	gated.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/open"}}
	createPod(t, ns, gated)
	got := awaitPod(t, ns, "gated", func(p *corev1.Pod) bool { return condition(p, corev1.ContainersReady) == corev1.ConditionTrue })
	assert.False(t, ready(got))
	_, err := client.CoreV1().Pods(ns).Patch(t.Context(), "gated", types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"example.com/open","status":"True"}]}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	awaitPod(t, ns, "gated", ready)
}

// The node's process may be started again beside a cluster that keeps running.
func TestPodsKeepTheirAddressesOverARestartOfTheNode(t *testing.T) {
	ns := namespace(t)
	createPod(t, ns, pod("before"))
	awaitPod(t, ns, "before", ready)
	createPod(t, ns, pod("old"))
	old := awaitPod(t, ns, "old", ready)
	// The address that a node would give first is free.
	require.NoError(t, client.CoreV1().Pods(ns).Delete(t.Context(), "before", metav1.DeleteOptions{}))
	fake.Stop()
	createPod(t, ns, pod("new"))
	var err error
	fake, err = node.Start(t.Context(), shared.Config(), options)
	require.NoError(t, err)
	fresh := awaitPod(t, ns, "new", ready)
	assert.NotEqual(t, old.Status.PodIP, fresh.Status.PodIP)
	again := awaitPod(t, ns, "old", ready)
	assert.Equal(t, old.Status.PodIP, again.Status.PodIP)
	assert.Equal(t, old.ResourceVersion, again.ResourceVersion, "what is right is not written")
}

func TestNodeOutlivesAPausedAPIServer(t *testing.T) {
	ns := namespace(t)
	shared.Pause()
	require.NoError(t, shared.Resume(t.Context()))
	createPod(t, ns, pod("after"))
	awaitPod(t, ns, "after", ready)
}

func TestStartEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := node.Start(ctx, shared.Config(), node.Options{Name: "late", PodCIDR: podCIDR})
	require.ErrorContains(t, err, "node late: ")
}
