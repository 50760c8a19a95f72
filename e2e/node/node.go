package node

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	// heartbeat is the time between two of them. A node is lost to
	// kube-controller-manager after 50 s.
	heartbeat = 5 * time.Second
	// startLimit is for a machine that is busy with builds.
	startLimit = time.Minute
	// Retries while the API server is away, from and to.
	retryMin, retryMax = 50 * time.Millisecond, time.Second
)

// Options says what the node is.
type Options struct {
	// Name is the Node's name.
	Name string
	// PodCIDR holds the node's own address, the first one, and its Pods'.
	PodCIDR netip.Prefix
	// Labels are added to the usual ones, for Pods with a nodeSelector.
	Labels map[string]string
	// Runtime runs the containers of Pods that stay; nil is none, and they are
	// said to run.
	Runtime Runtime
}

// Node is a fake node that runs.
type Node struct {
	options   Options
	client    kubernetes.Interface
	pods      corelisters.PodLister
	nodes     corelisters.NodeLister
	queue     workqueue.TypedRateLimitingInterface[cache.ObjectName]
	addresses *addresses

	cancel context.CancelFunc
	group  errgroup.Group
}

// Start joins a node to a cluster and returns when the cluster calls it ready. ctx
// bounds only the start; the node runs until Stop.
func Start(ctx context.Context, config *rest.Config, options Options) (*Node, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "fake-node")
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", options.Name, err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n := &Node{
		options: options, client: client, cancel: cancel,
		addresses: newAddresses(options.PodCIDR),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](retryMin, retryMax)),
	}
	if err := n.run(ctx, running); err != nil {
		n.Stop()
		return nil, fmt.Errorf("node %s: %w", options.Name, err)
	}
	return n, nil
}

// Stop ends the node as a power cut does: its objects stay, nobody looks
// after them.
func (n *Node) Stop() {
	n.cancel()
	n.queue.ShutDown()
	// The goroutines give no errors: what fails is tried again.
	_ = n.group.Wait()
}

func (n *Node) run(ctx, running context.Context) error {
	factory := informers.NewSharedInformerFactory(n.client, 0)
	pods := factory.Core().V1().Pods()
	nodes := factory.Core().V1().Nodes()
	n.pods, n.nodes = pods.Lister(), nodes.Lister()
	if _, err := pods.Informer().AddEventHandler(n.enqueue()); err != nil {
		return err
	}
	synced := []cache.InformerSynced{pods.Informer().HasSynced, nodes.Informer().HasSynced}
	factory.StartWithContext(running)
	n.group.Go(func() error {
		<-running.Done()
		factory.Shutdown()
		return nil
	})
	starting, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if !cache.WaitForCacheSync(starting.Done(), synced...) {
		return fmt.Errorf("caches: %w", starting.Err())
	}
	n.group.Go(func() error {
		n.heartbeats(running)
		return nil
	})
	n.group.Go(func() error {
		for n.next(running) {
		}
		return nil
	})
	if n.options.Runtime != nil {
		n.group.Go(func() error {
			n.listen(running)
			return nil
		})
	}
	return n.awaitReady(starting)
}

// awaitReady waits until the cluster has taken the taint away that it gives
// to new nodes.
func (n *Node) awaitReady(ctx context.Context) error {
	var last *corev1.Node
	err := wait.PollUntilContextCancel(ctx, retryMin, true, func(context.Context) (bool, error) {
		node, err := n.nodes.Get(n.options.Name)
		if err != nil {
			// Not there yet.
			return false, nil //nolint:nilerr // a lister has no other error
		}
		last = node
		return ready(node) && len(node.Spec.Taints) == 0, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("%w: taints %v, conditions %v", err, last.Spec.Taints, last.Status.Conditions)
	}
	return err
}

func (n *Node) enqueue() cache.ResourceEventHandler {
	add := func(object any) {
		if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
			n.queue.Add(name)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: add, DeleteFunc: add,
		UpdateFunc: func(_, object any) { add(object) },
	}
}
