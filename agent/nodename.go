package agent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clusterNameAnnotation is on every node that Cluster API made.
const clusterNameAnnotation = "cluster.x-k8s.io/cluster-name"

const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// nodeNames reads the name that Cluster API has given to the control plane nodes.
// Workers are not asked: whoever takes one over writes its annotations.
type nodeNames struct {
	// client reads from a cache.
	client client.Reader

	last string
}

// controlPlaneNodes are the nodes that the cache holds, and of them the metadata.
func controlPlaneNodes() (*metav1.PartialObjectMetadata, cache.ByObject) {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	there, _ := labels.NewRequirement(controlPlaneLabel, selection.Exists, nil) // of constants
	return node, cache.ByObject{Label: labels.NewSelector().Add(*there), Transform: cache.TransformStripManagedFields()}
}

// read gives "" where the nodes have no name, or not the same one. What can't be
// read is as it was.
func (n *nodeNames) read(ctx context.Context) (string, error) {
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := n.client.List(ctx, nodes, client.HasLabels{controlPlaneLabel}); err != nil {
		return n.last, fmt.Errorf("list control plane nodes: %w", err)
	}
	n.last = agreed(nodes.Items)
	return n.last, nil
}

// agreed is the name that all nodes have, or "".
func agreed(nodes []metav1.PartialObjectMetadata) string {
	name := ""
	for i, node := range nodes {
		its := node.Annotations[clusterNameAnnotation]
		if its == "" || (i > 0 && its != name) {
			return ""
		}
		name = its
	}
	return name
}
