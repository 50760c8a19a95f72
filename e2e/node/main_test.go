package node_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/node"
)

// A cluster with one node, for all tests; each has a namespace of its own.
var (
	shared  *cluster.Cluster
	client  kubernetes.Interface
	fake    *node.Node
	podCIDR = netip.MustParsePrefix("10.250.0.0/24")
	options = node.Options{Name: "fake", PodCIDR: podCIDR, Labels: map[string]string{"disk": "ssd"}}
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx := context.Background()
	release, err := harness.Places(ctx, 1)
	if err != nil {
		return fail(err)
	}
	defer release()
	host, err := harness.NewHost(ctx)
	if err != nil {
		return fail(err)
	}
	defer host.Stop()
	if shared, err = host.Start(ctx, cluster.Options{Name: "shared"}); err != nil {
		return fail(err)
	}
	if client, err = kubernetes.NewForConfig(shared.Config()); err != nil {
		return fail(err)
	}
	if fake, err = node.Start(ctx, shared.Config(), options); err != nil {
		return fail(err)
	}
	// A test may put another in its place.
	defer func() { fake.Stop() }()
	return m.Run()
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func namespace(t *testing.T) string {
	t.Helper()
	made, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	// Pods of one test must not stay to be counted by another.
	t.Cleanup(func() {
		_ = client.CoreV1().Namespaces().Delete(context.Background(), made.Name, metav1.DeleteOptions{})
	})
	return made.Name
}

func eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	require.NoError(t, harness.Eventually(t.Context(), check))
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}
}

func template(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: meta(name),
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/" + name + ":1"}}},
	}
}

func pod(name string) *corev1.Pod {
	t := template(name)
	return &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: meta(name),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: meta(name).Labels}, Template: template(name),
		},
	}
}

func createPod(t *testing.T, ns string, p *corev1.Pod) {
	t.Helper()
	_, err := client.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{})
	require.NoError(t, err)
}

// awaitPod waits until a Pod is as wanted and gives it.
func awaitPod(t *testing.T, ns, name string, wanted func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var got *corev1.Pod
	eventually(t, func(ctx context.Context) error {
		var err error
		if got, err = client.CoreV1().Pods(ns).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if !wanted(got) {
			return fmt.Errorf("pod %s: node %q, %+v", name, got.Spec.NodeName, got.Status)
		}
		return nil
	})
	return got
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

func ready(p *corev1.Pod) bool { return condition(p, corev1.PodReady) == corev1.ConditionTrue }
