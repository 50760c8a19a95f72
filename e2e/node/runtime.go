package node

import (
	"context"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Runtime runs the containers of Pods.
type Runtime interface {
	// Run starts what of a Pod doesn't run yet. It is called again and again; an
	// error says what doesn't run, and makes the Pod one that isn't ready.
	Run(ctx context.Context, pod *corev1.Pod, address netip.Addr) error
	// End asks what runs of a Pod to end, and ends it after the grace; true when
	// nothing is left. It doesn't wait.
	End(name cache.ObjectName, grace time.Duration) bool
	// Changed gives the Pods of which something has ended.
	Changed() <-chan cache.ObjectName
}

// listen looks again after Pods of which something has ended.
func (n *Node) listen(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-n.options.Runtime.Changed():
			n.queue.Add(name)
		}
	}
}

// up makes the containers run, where there is somebody for that, and says why they
// don't.
func (n *Node) up(ctx context.Context, pod *corev1.Pod, address netip.Addr) error {
	if n.options.Runtime == nil || phase(pod) != corev1.PodRunning {
		return nil
	}
	return n.options.Runtime.Run(ctx, pod, address)
}

// ended says whether nothing of the Pod runs any more.
func (n *Node) ended(name cache.ObjectName, grace time.Duration) bool {
	return n.options.Runtime == nil || n.options.Runtime.End(name, grace)
}

func grace(pod metav1.Object) time.Duration {
	seconds := pod.GetDeletionGracePeriodSeconds()
	if seconds == nil {
		return 0
	}
	return time.Duration(*seconds) * time.Second
}
