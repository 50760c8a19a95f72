package birth

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/harness"
)

const (
	// controlPlaneVersion is the group and version of kubeadm's control planes.
	controlPlaneVersion = "controlplane.cluster.x-k8s.io/v1beta2"
	controlPlane        = "KubeadmControlPlane"

	controlPlaneManager = "control-plane"

	loopback = "127.0.0.1"
)

// StartProviders starts, beside the core manager, all that makes a cluster of
// kubeadm's. The infrastructure is the Docker provider's, of which only what is
// in its memory is asked for: it needs no container engine. Only what it says of a
// machine's capacity would be that engine's, and stays empty.
func (m *Management) StartProviders(ctx context.Context, p build.CAPIProviders) error {
	for _, each := range []manager{
		{CAPIManager: p.Bootstrap, name: "bootstrap"},
		{CAPIManager: p.ControlPlane, name: controlPlaneManager},
		// Where the API servers of its clusters are.
		{CAPIManager: p.Infrastructure, name: "infrastructure", env: []string{"POD_IP=" + loopback}},
	} {
		if err := m.startManager(ctx, each); err != nil {
			return fmt.Errorf("provider of %s: %w", each.name, err)
		}
	}
	return nil
}

// BearByKubeadm has Cluster API make a cluster of an entry, with a control plane
// of one machine. Labels are the machine's.
func (m *Management) BearByKubeadm(ctx context.Context, entry *unstructured.Unstructured, labels map[string]string) error {
	// Its provider would take the first of a range in which our API servers are.
	ports, err := freePorts(ctx, 1)
	if err != nil {
		return err
	}
	port, err := strconv.ParseInt(ports[0], 10, 64)
	if err != nil {
		return err
	}
	name := entry.GetName()
	made := entry.DeepCopy()
	made.SetNamespace(metav1.NamespaceDefault)
	infrastructureRef := reference(infrastructureGroup, "DevCluster", name)
	controlPlaneRef := reference("controlplane.cluster.x-k8s.io", controlPlane, name)
	if err := errors.Join(
		unstructured.SetNestedMap(made.Object, infrastructureRef, "spec", "infrastructureRef"),
		unstructured.SetNestedMap(made.Object, controlPlaneRef, "spec", "controlPlaneRef"),
	); err != nil {
		return err
	}
	return m.Apply(ctx, inMemoryCluster(name, port), inMemoryMachines(name), kubeadmControlPlane(name, labels), made)
}

func reference(group, kind, name string) map[string]any {
	return map[string]any{"apiGroup": group, "kind": kind, "name": name}
}

// inMemory says of an object of the provider that it needs no container.
func inMemory() map[string]any { return map[string]any{"inMemory": map[string]any{}} }

func inMemoryCluster(name string, port int64) *unstructured.Unstructured {
	o := object(infrastructureVersion, "DevCluster", name, map[string]any{"spec": map[string]any{
		"backend": inMemory(), "controlPlaneEndpoint": map[string]any{"host": loopback, "port": port},
	}})
	// What the provider sets itself, in a map that it takes to be there: without
	// any annotation it panics, forever.
	o.SetAnnotations(map[string]string{"inmemorycluster.infrastructure.cluster.x-k8s.io/listener": o.GetNamespace() + "/" + name})
	return o
}

func inMemoryMachines(name string) *unstructured.Unstructured {
	return object(infrastructureVersion, "DevMachineTemplate", name, map[string]any{"spec": map[string]any{
		"template": map[string]any{"spec": map[string]any{"backend": inMemory()}},
	}})
}

func kubeadmControlPlane(name string, labels map[string]string) *unstructured.Unstructured {
	ofMachine := map[string]any{}
	for key, value := range labels {
		ofMachine[key] = value
	}
	return object(controlPlaneVersion, controlPlane, name, map[string]any{"spec": map[string]any{
		"replicas": int64(1),
		// What the machine says that it runs; nothing runs there.
		"version": "v1.36.3",
		"machineTemplate": map[string]any{
			"metadata": map[string]any{"labels": ofMachine},
			"spec":     map[string]any{"infrastructureRef": reference(infrastructureGroup, "DevMachineTemplate", name)},
		},
	}})
}

// ControlPlaneInitialized waits until a Cluster says that its control plane is.
func (m *Management) ControlPlaneInitialized(ctx context.Context, name string) error {
	o := object(clusterVersion, "Cluster", name, nil)
	return harness.Eventually(ctx, func(ctx context.Context) error {
		err := m.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
		if err == nil && !initialized(o) {
			err = fmt.Errorf("the control plane of %s is not initialized: %v", name, o.Object["status"])
		}
		return err
	})
}

// HoldControlPlanes has their provider stand still where it is, until the function
// that it gives is called: no control plane is said to be initialized meanwhile.
func (m *Management) HoldControlPlanes() (goOn func() error, err error) {
	held, known := m.managers[controlPlaneManager]
	if !known {
		return nil, errors.New("no provider of control planes was started")
	}
	return func() error { return syscall.Kill(held.Pid(), syscall.SIGCONT) }, syscall.Kill(held.Pid(), syscall.SIGSTOP)
}

// Workload gives the administrator's client of a cluster, by the kubeconfig that
// its control plane's provider wrote.
func (m *Management) Workload(ctx context.Context, name string) (client.Client, error) {
	secret := &corev1.Secret{}
	if err := m.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name + "-kubeconfig"}, secret); err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // no limit of its own: it polls
	return client.New(config, client.Options{})
}

// Machines gives those of a cluster, by the name of the Machine.
func (m *Management) Machines(ctx context.Context, name string) (map[string]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(clusterVersion)
	list.SetKind("MachineList")
	if err := m.Client.List(ctx, list, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{clusterNameLabel: name}); err != nil {
		return nil, err
	}
	machines := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		machines[list.Items[i].GetName()] = &list.Items[i]
	}
	return machines, nil
}

// ControlPlane gives the name and kind of kubeadm's control plane of a cluster.
func ControlPlane(name string) *unstructured.Unstructured {
	return object(controlPlaneVersion, controlPlane, name, nil)
}
