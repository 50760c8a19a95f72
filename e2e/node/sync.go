package node

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
)

// next looks after one Pod; false when the queue is shut down.
func (n *Node) next(ctx context.Context) bool {
	name, shutdown := n.queue.Get()
	if shutdown {
		return false
	}
	defer n.queue.Done(name)
	err := n.sync(ctx, name)
	switch {
	case err == nil || ctx.Err() != nil:
		n.queue.Forget(name)
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		// The cache is behind; it will know better.
		n.queue.AddRateLimited(name)
	default:
		utilruntime.HandleErrorWithContext(ctx, err, "fake node's Pod", "pod", name)
		n.queue.AddRateLimited(name)
	}
	return true
}

// sync takes the next step for one Pod.
func (n *Node) sync(ctx context.Context, name cache.ObjectName) error {
	pod, err := n.pods.Pods(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		if !n.ended(name, 0) {
			return nil
		}
		n.addresses.release(name)
		return nil
	}
	if err != nil {
		return err
	}
	node, err := n.nodes.Get(n.options.Name)
	if err != nil {
		return err
	}
	switch decide(pod, node) {
	case bind:
		return n.bind(ctx, pod)
	case remove:
		return n.remove(ctx, pod)
	case report:
		return n.report(ctx, pod)
	default:
		return nil
	}
}

type step int

const (
	leave step = iota
	bind
	remove
	report
)

// decide says what the Pod needs next of this node.
func decide(pod *corev1.Pod, node *corev1.Node) step {
	deleted := pod.DeletionTimestamp != nil
	switch {
	case pod.Spec.NodeName == "" && (deleted || !fits(pod, node)):
		return leave
	case pod.Spec.NodeName == "":
		return bind
	case pod.Spec.NodeName != node.Name:
		return leave
	case !deleted:
		return report
	case pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0:
		// Removed already; finalizers keep it.
		return leave
	default:
		return remove
	}
}

func fits(pod *corev1.Pod, node *corev1.Node) bool {
	return len(pod.Spec.SchedulingGates) == 0 &&
		pod.Spec.SchedulerName == corev1.DefaultSchedulerName &&
		labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(node.Labels))
}

func (n *Node) bind(ctx context.Context, pod *corev1.Pod) error {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.options.Name},
	}
	return n.client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
}

// remove takes the Pod away once nothing of it runs. Before that, its end puts it
// into the queue again.
func (n *Node) remove(ctx context.Context, pod *corev1.Pod) error {
	if !n.ended(cache.MetaObjectToName(pod), grace(pod)) {
		return nil
	}
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	return n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *options)
}

func (n *Node) report(ctx context.Context, pod *corev1.Pod) error {
	address, err := n.address(pod)
	if err != nil {
		return fmt.Errorf("address: %w", err)
	}
	down := n.up(ctx, pod, address)
	status := podStatus(pod, n.addresses.node, address, down, metav1.Now())
	if equality.Semantic.DeepEqual(pod.Status, status) {
		return down
	}
	reported := pod.DeepCopy()
	reported.Status = status
	_, err = n.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, reported, metav1.UpdateOptions{})
	return errors.Join(down, err)
}
