package agent

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clusterNameAnnotation is on every node that Cluster API made.
const clusterNameAnnotation = "cluster.x-k8s.io/cluster-name"

const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// nodeNames reads the name that Cluster API has given to the control plane nodes.
// Workers are not asked: whoever takes one over writes its annotations.
type nodeNames struct {
	client client.Reader

	last string
	next time.Time
}

// nodesEvery is how often nodes are looked at: their names don't change.
const nodesEvery = time.Minute

// read gives "" where the nodes have no name, or not the same one. What can't be
// read is as it was.
func (n *nodeNames) read(ctx context.Context, now time.Time) (string, error) {
	if now.Before(n.next) {
		return n.last, nil
	}
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "NodeList"})
	if err := n.client.List(ctx, nodes, client.HasLabels{controlPlaneLabel}, client.Limit(pageSize)); err != nil {
		return n.last, fmt.Errorf("list control plane nodes: %w", err)
	}
	n.last, n.next = agreed(nodes.Items), now.Add(nodesEvery)
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
