package birth_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/e2e/birth"
	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/process"
	"github.com/fleetling/fleetling/e2e/world"
)

// tier is a label that Cluster API takes from a machine to its Node.
const tier = "fleetling.node-restriction.kubernetes.io/tier"

// A cluster that kubeadm's providers make. What no stand-in shows: the bundle
// comes to a control plane that is not whole yet, and a Node follows its machine.
func TestLongKubeadmBirth(t *testing.T) {
	if os.Getenv("FLEETLING_LONG") == "" {
		t.Skip("runs in make test-long")
	}
	k := newKubeadm(t)
	k.part("the bundle is delivered to a control plane of kubeadm's", k.born)
	k.part("a label of the machines is changed on the same machine", k.relabelled)
	k.part("a file of the machines makes another machine", k.replaced)
	k.part("the bundle waits for no control plane to be initialized", k.early)
}

// kubeadm is a scenario without a workload cluster of its own: its providers make
// one.
type kubeadm struct {
	*scenario
	// api is the administrator's client there.
	api client.Client
}

func newKubeadm(t *testing.T) *kubeadm {
	t.Helper()
	root, err := build.Root()
	require.NoError(t, err)
	capi, err := build.FindCAPIManager(t.Context(), root)
	require.NoError(t, err)
	providers, err := build.FindCAPIProviders(t.Context(), root)
	require.NoError(t, err)
	release, err := harness.Places(t.Context(), 1)
	require.NoError(t, err)
	t.Cleanup(release)
	k := &kubeadm{scenario: newFleetScenario(t)}
	k.management, err = birth.StartManagement(t.Context(), k.host, capi, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() {
		k.management.Stop()
		if t.Failed() {
			for name, log := range k.management.Logs() {
				t.Logf("%s: %s", name, process.Tail(log))
			}
		}
	})
	require.NoError(t, k.management.StartProviders(t.Context(), providers))
	return k
}

func (k *kubeadm) part(what string, do func()) {
	k.Helper()
	k.run(what, func(*scenario) { do() })
}

// born leaves it to chance what comes first: who delivers and who looks whether the
// control plane is initialized connect each by itself, and try again in 30 seconds.
func (k *kubeadm) born() {
	course := k.follow()
	k.deliver()
	k.bear()
	delivered, initialized := k.course(course)
	k.Logf("delivered first: %t (at %d, initialized at %d)", delivered < initialized, delivered, initialized)
	k.whole()
	k.do(k.eventuallyOfNode(func(node *corev1.Node) error {
		if got := node.Annotations["cluster.x-k8s.io/cluster-name"]; got != name {
			return fmt.Errorf("the Node is of cluster %q", got)
		}
		return labelled(node, "canary")
	}))
}

// early has a cluster of the same name born again, whose control plane nobody
// calls initialized before the bundle is there. It may take a minute until the
// provider that was held gives up its connection to the cluster before.
func (k *kubeadm) early() {
	k.do(k.management.Forget(k.Context(), name))
	course := k.follow()
	k.bear()
	k.do(harness.Eventually(k.Context(), func(ctx context.Context) error {
		machines, err := k.machines(ctx)
		if err == nil && len(machines) == 0 {
			err = errors.New("there is no machine yet")
		}
		return err
	}))
	goOn, err := k.management.HoldControlPlanes()
	k.do(err)
	k.do(k.management.Delivered(k.Context(), name, 3))
	k.do(goOn())
	delivered, initialized := k.course(course)
	assert.Less(k, delivered, initialized)
	k.whole()
}

func (k *kubeadm) bear() {
	k.Helper()
	k.do(k.management.BearByKubeadm(k.Context(), k.entry(), map[string]string{tier: "canary"}))
}

func (k *kubeadm) follow() *birth.Course {
	k.Helper()
	course, err := k.management.Follow(k.Context())
	k.do(err)
	k.Cleanup(course.Stop)
	return course
}

// course waits for the end of a birth, and gives when the bundle was delivered and
// when the control plane was initialized.
func (k *kubeadm) course(course *birth.Course) (delivered, initialized uint64) {
	k.Helper()
	k.do(k.management.Delivered(k.Context(), name, 3))
	k.do(k.management.ControlPlaneInitialized(k.Context(), name))
	delivered, err := course.Delivered(3)
	k.do(err)
	initialized, err = course.Initialized()
	k.do(err)
	k.api, err = k.management.Workload(k.Context(), name)
	k.do(err)
	return delivered, initialized
}

// whole requires all that the bundle delivers.
func (k *kubeadm) whole() {
	k.Helper()
	for _, o := range k.render("--plain", name) {
		live := o.DeepCopy()
		require.NoError(k, k.api.Get(k.Context(), client.ObjectKeyFromObject(o), live), "%s %s", o.GetKind(), o.GetName())
	}
	inNamespace := func(name string) client.ObjectKey {
		return client.ObjectKey{Namespace: world.Namespace, Name: name}
	}
	agent := &appsv1.Deployment{}
	k.do(k.api.Get(k.Context(), inNamespace("fleetling"), agent))
	assert.Equal(k, image, agent.Spec.Template.Spec.Containers[0].Image)
	identity := &corev1.ConfigMap{}
	k.do(k.api.Get(k.Context(), inNamespace("fleetling-identity"), identity))
	assert.Contains(k, identity.Data["identity.yaml"], "region: ap-south")
	credentials := &corev1.Secret{}
	k.do(k.api.Get(k.Context(), inNamespace("fleetling-git"), credentials))
	assert.Equal(k, password, string(credentials.Data["password"]))
}

func (k *kubeadm) relabelled() {
	before := k.machine()
	k.patch(`{"spec": {"machineTemplate": {"metadata": {"labels": {"` + tier + `": "standard"}}}}}`)
	k.do(k.eventuallyOfNode(func(node *corev1.Node) error { return labelled(node, "standard") }))
	k.do(k.settled())
	assert.Equal(k, before, k.machine(), "no rollout")
}

// replaced is the other case: so relabelled would have seen one.
func (k *kubeadm) replaced() {
	before := k.machine()
	k.patch(`{"spec": {"kubeadmConfigSpec": {"files": [{"path": "/etc/motd", "content": "another"}]}}}`)
	k.do(harness.Eventually(k.Context(), func(ctx context.Context) error {
		if now, err := k.machines(ctx); err != nil || maps.Equal(now, before) {
			return fmt.Errorf("the machine is the same: %v: %w", now, err)
		}
		return nil
	}))
	k.do(k.settled())
	after := k.machine()
	for old := range before {
		assert.NotContains(k, after, old)
	}
	k.do(k.eventuallyOfNode(func(node *corev1.Node) error { return labelled(node, "standard") }))
	k.whole()
}

// patch changes kubeadm's control plane.
func (k *kubeadm) patch(patch string) {
	k.Helper()
	k.do(k.management.Client.Patch(k.Context(), birth.ControlPlane(name), client.RawPatch(types.MergePatchType, []byte(patch))))
}

// settled waits until the control plane has seen its last change and is one
// machine that keeps it.
func (k *kubeadm) settled() error {
	o := birth.ControlPlane(name)
	return harness.Eventually(k.Context(), func(ctx context.Context) error {
		if err := k.management.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		status, _, err := unstructured.NestedMap(o.Object, "status")
		if err != nil {
			return err
		}
		for field, want := range map[string]int64{"observedGeneration": o.GetGeneration(), "replicas": 1, "readyReplicas": 1, "upToDateReplicas": 1} {
			if status[field] != want {
				return fmt.Errorf("%s is %v and not %d", field, status[field], want)
			}
		}
		return nil
	})
}

// machine gives the UID of the only machine, by its name.
func (k *kubeadm) machine() map[string]types.UID {
	k.Helper()
	machines, err := k.machines(k.Context())
	k.do(err)
	require.Len(k, machines, 1)
	return machines
}

func (k *kubeadm) machines(ctx context.Context) (map[string]types.UID, error) {
	machines, err := k.management.Machines(ctx, name)
	uids := map[string]types.UID{}
	for name, machine := range machines {
		uids[name] = machine.GetUID()
	}
	return uids, err
}

// eventuallyOfNode waits until a check of the only Node gives no error.
func (k *kubeadm) eventuallyOfNode(check func(*corev1.Node) error) error {
	return harness.Eventually(k.Context(), func(ctx context.Context) error {
		var nodes corev1.NodeList
		if err := k.api.List(ctx, &nodes); err != nil {
			return err
		}
		if len(nodes.Items) != 1 {
			return fmt.Errorf("there are %d Nodes", len(nodes.Items))
		}
		return check(&nodes.Items[0])
	})
}

func labelled(node *corev1.Node, want string) error {
	if got := node.Labels[tier]; got != want {
		return fmt.Errorf("the Node's tier is %q and not %q", got, want)
	}
	return nil
}
