package node

import (
	"context"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
)

// leaseSeconds is a kubelet's.
const leaseSeconds = 40

func (n *Node) heartbeats(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := n.beat(ctx); err != nil && ctx.Err() == nil {
			utilruntime.HandleErrorWithContext(ctx, err, "fake node's heartbeat", "node", n.options.Name)
		}
	}, heartbeat)
}

// beat makes the Node and its Lease what they should be, whatever they are: the
// Node may be missing, and its condition Unknown, after the API server was away.
func (n *Node) beat(ctx context.Context) error {
	node, err := n.client.CoreV1().Nodes().Get(ctx, n.options.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		node, err = n.client.CoreV1().Nodes().Create(ctx, n.object(), metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	if !ready(node) {
		node.Status = n.status(metav1.Now())
		if _, err := n.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return n.renew(ctx)
}

func (n *Node) renew(ctx context.Context) error {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now, seconds := metav1.NewMicroTime(time.Now()), int32(leaseSeconds)
	lease, err := leases.Get(ctx, n.options.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.options.Name}}
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &n.options.Name, LeaseDurationSeconds: &seconds, RenewTime: &now}
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

func (n *Node) object() *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   n.options.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}
	maps.Copy(labels, n.options.Labels)
	cidr := n.options.PodCIDR.String()
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.options.Name, Labels: labels},
		Spec:       corev1.NodeSpec{PodCIDR: cidr, PodCIDRs: []string{cidr}, ProviderID: fmt.Sprintf("fake://%s", n.options.Name)},
	}
}

func (n *Node) status(now metav1.Time) corev1.NodeStatus {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("1000"),
	}
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: "FakeNode", Message: Notice,
			LastHeartbeatTime: now, LastTransitionTime: now,
		}
	}
	return corev1.NodeStatus{
		Capacity: capacity, Allocatable: capacity.DeepCopy(),
		Conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse),
			condition(corev1.NodeDiskPressure, corev1.ConditionFalse),
			condition(corev1.NodePIDPressure, corev1.ConditionFalse),
			condition(corev1.NodeReady, corev1.ConditionTrue),
		},
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: n.addresses.node.String()},
			{Type: corev1.NodeHostName, Address: n.options.Name},
		},
		NodeInfo: corev1.NodeSystemInfo{
			KubeletVersion: "v1.37.2-fake", ContainerRuntimeVersion: "none://", OperatingSystem: "linux", Architecture: "amd64",
		},
	}
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
