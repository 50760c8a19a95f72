package birth

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Course tells in which order a birth went, by the resourceVersions of its
// objects: all writes to one etcd are counted by one counter, so that those of two
// kinds compare, which times in seconds do not.
type Course struct {
	bindings, clusters watch.Interface
}

// Follow begins before the cluster is made. Whoever starts it stops it.
func (m *Management) Follow(ctx context.Context) (*Course, error) {
	watcher, err := client.NewWithWatch(m.Config(), client.Options{})
	if err != nil {
		return nil, err
	}
	follow := func(apiVersion, kind string) (watch.Interface, error) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(apiVersion)
		list.SetKind(kind + "List")
		return watcher.Watch(ctx, list, client.InNamespace(metav1.NamespaceDefault))
	}
	bindings, err := follow(addonsVersion, "ClusterResourceSetBinding")
	if err != nil {
		return nil, err
	}
	clusters, err := follow(clusterVersion, "Cluster")
	if err != nil {
		bindings.Stop()
		return nil, err
	}
	return &Course{bindings: bindings, clusters: clusters}, nil
}

// Stop ends it.
func (c *Course) Stop() { c.bindings.Stop(); c.clusters.Stop() }

// Delivered gives when the binding said of n resources that they are applied. It
// waits for that without a limit of its own.
func (c *Course) Delivered(n int) (uint64, error) {
	return version(c.bindings, func(o *unstructured.Unstructured) bool {
		applied, err := appliedIn(o)
		return err == nil && len(applied) == n
	})
}

// Initialized gives when the Cluster said that its control plane is initialized.
// It waits for that without a limit of its own.
func (c *Course) Initialized() (uint64, error) {
	return version(c.clusters, initialized)
}

// version gives that of the first object that has come so far.
func version(objects watch.Interface, far func(*unstructured.Unstructured) bool) (uint64, error) {
	for event := range objects.ResultChan() {
		o, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return 0, fmt.Errorf("watch: %v", event.Object)
		}
		if far(o) {
			return strconv.ParseUint(o.GetResourceVersion(), 10, 64)
		}
	}
	return 0, errors.New("watch: it ended before")
}

// initialized says of a Cluster whether its control plane is initialized.
func initialized(o *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		if condition["type"] == "ControlPlaneInitialized" {
			return condition["status"] == string(metav1.ConditionTrue)
		}
	}
	return false
}
