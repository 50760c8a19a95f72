package birth

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/harness"
)

const (
	// Groups and versions of Cluster API.
	clusterVersion        = "cluster.x-k8s.io/v1beta2"
	addonsVersion         = "addons.cluster.x-k8s.io/v1beta2"
	infrastructureGroup   = "infrastructure.cluster.x-k8s.io"
	infrastructureVersion = infrastructureGroup + "/v1beta2"
	infrastructure        = "StandInCluster"

	clusterNameLabel = "cluster.x-k8s.io/cluster-name"
)

// Bear has Cluster API make a cluster of an entry: the workload cluster stands
// already, its infrastructure says that it is provisioned.
func (m *Management) Bear(ctx context.Context, entry *unstructured.Unstructured, workload *cluster.Cluster) error {
	kubeconfig, err := workload.Kubeconfig()
	if err != nil {
		return err
	}
	name := entry.GetName()
	made := entry.DeepCopy()
	made.SetNamespace(metav1.NamespaceDefault)
	if err := unstructured.SetNestedStringMap(made.Object, map[string]string{
		"apiGroup": infrastructureGroup, "kind": infrastructure, "name": name,
	}, "spec", "infrastructureRef"); err != nil {
		return err
	}
	// The order in which the manager need not wait for any of them.
	return m.Apply(ctx, kubeconfigSecret(name, kubeconfig), provisioned(name), made)
}

// kubeconfigSecret is what a control plane provider would write. Without the
// label it would be invisible to the manager.
func kubeconfigSecret(name string, kubeconfig []byte) *unstructured.Unstructured {
	o := object("v1", "Secret", name+"-kubeconfig", map[string]any{
		"type": "cluster.x-k8s.io/secret",
		"data": map[string]any{"value": base64.StdEncoding.EncodeToString(kubeconfig)},
	})
	o.SetLabels(map[string]string{clusterNameLabel: name})
	return o
}

func provisioned(name string) *unstructured.Unstructured {
	return object(infrastructureVersion, infrastructure, name, map[string]any{
		"spec":   map[string]any{"controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": int64(6443)}},
		"status": map[string]any{"initialization": map[string]any{"provisioned": true}},
	})
}

// infrastructureKind is an infrastructure provider's that has no controller.
func infrastructureKind() *unstructured.Unstructured {
	plural := strings.ToLower(infrastructure) + "s"
	o := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", plural+"."+infrastructureGroup, map[string]any{
		"spec": map[string]any{
			"group": infrastructureGroup, "scope": "Namespaced",
			"names": map[string]any{"kind": infrastructure, "listKind": infrastructure + "List", "plural": plural, "singular": strings.ToLower(infrastructure)},
			"versions": []any{map[string]any{
				"name": "v1beta2", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	})
	o.SetNamespace("")
	// Says which contract of Cluster API a version keeps.
	o.SetLabels(map[string]string{clusterVersion[:strings.Index(clusterVersion, "/")] + "/v1beta2": "v1beta2"})
	return o
}

// Forget deletes a Cluster, and returns when it is gone with all that belongs to
// it.
func (m *Management) Forget(ctx context.Context, name string) error {
	if err := m.Client.Delete(ctx, object(clusterVersion, "Cluster", name, nil)); err != nil {
		return err
	}
	for _, gone := range []*unstructured.Unstructured{
		object(clusterVersion, "Cluster", name, nil),
		object(infrastructureVersion, infrastructure, name, nil),
		object(addonsVersion, "ClusterResourceSetBinding", name, nil),
	} {
		err := harness.Eventually(ctx, func(ctx context.Context) error {
			err := m.Client.Get(ctx, client.ObjectKeyFromObject(gone), gone)
			if err == nil {
				return fmt.Errorf("%s %s is still there", gone.GetKind(), name)
			}
			return client.IgnoreNotFound(err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Delivered waits until the binding of a cluster says of n resources, and of no
// other, that they are applied there.
func (m *Management) Delivered(ctx context.Context, name string, n int) error {
	return harness.Eventually(ctx, func(ctx context.Context) error {
		binding := object(addonsVersion, "ClusterResourceSetBinding", name, nil)
		if err := m.Client.Get(ctx, client.ObjectKeyFromObject(binding), binding); err != nil {
			return err
		}
		applied, err := appliedIn(binding)
		if err != nil {
			return err
		}
		if len(applied) != n {
			return fmt.Errorf("applied: %v, %d in all and not %d", applied, len(applied), n)
		}
		return nil
	})
}

// appliedIn gives the names of what a binding says is applied.
func appliedIn(binding *unstructured.Unstructured) ([]string, error) {
	sets, _, err := unstructured.NestedSlice(binding.Object, "spec", "bindings")
	if err != nil {
		return nil, err
	}
	var applied []string
	for _, set := range sets {
		content, _ := set.(map[string]any)
		resources, _, err := unstructured.NestedSlice(content, "resources")
		if err != nil {
			return nil, err
		}
		for _, resource := range resources {
			r, _ := resource.(map[string]any)
			if r["applied"] != true {
				return nil, fmt.Errorf("%v is not applied yet", r["name"])
			}
			applied = append(applied, fmt.Sprint(r["name"]))
		}
	}
	return applied, nil
}

// object makes one in namespace default.
func object(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(o.Object, content)
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	o.SetNamespace(metav1.NamespaceDefault)
	return o
}
