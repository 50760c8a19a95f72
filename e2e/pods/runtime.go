package pods

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetling/fleetling/e2e/network"
)

// Runtime runs the Pods of one site. It is a node.Runtime.
type Runtime struct {
	site    *network.Site
	dir     string
	changed chan cache.ObjectName

	// stopped is closed by Stop.
	stopped chan struct{}
	group   sync.WaitGroup

	mu   sync.Mutex
	pods map[cache.ObjectName]*pod
}

// New makes a runtime that runs nothing yet. What containers print goes to files
// in dir, NAMESPACE_POD_CONTAINER.log.
func New(site *network.Site, dir string) *Runtime {
	return &Runtime{
		site: site, dir: dir, stopped: make(chan struct{}),
		changed: make(chan cache.ObjectName), pods: map[cache.ObjectName]*pod{},
	}
}

// Changed gives the Pods of which a process has ended.
func (r *Runtime) Changed() <-chan cache.ObjectName { return r.changed }

// Run starts what of a Pod doesn't run yet. Its error says which containers don't run.
func (r *Runtime) Run(ctx context.Context, object *corev1.Pod, address netip.Addr) error {
	containers := runnable(object)
	if len(containers) == 0 {
		return nil
	}
	p, err := r.pod(ctx, object, address)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range containers {
		if err := p.run(r, c); err != nil {
			errs = append(errs, fmt.Errorf("container %s: %w", c.Name, err))
		}
	}
	return errors.Join(errs...)
}

// End asks a Pod's processes to end, and ends them after the grace; true when
// nothing of it is left.
func (r *Runtime) End(name cache.ObjectName, grace time.Duration) bool {
	r.mu.Lock()
	p := r.pods[name]
	r.mu.Unlock()
	if p == nil {
		return true
	}
	if !p.begin() {
		if grace == 0 {
			// Asked before, with patience that has come to its end.
			p.kill()
		}
		return false
	}
	r.group.Go(func() {
		p.end(grace)
		r.forget(name, p)
		r.tell(name)
	})
	return false
}

// forget takes away the place of a Pod of which nothing runs.
func (r *Runtime) forget(name cache.ObjectName, p *pod) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// What can't be removed now goes with the whole network.
	_ = p.namespace.Remove(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, name)
}

// Stop ends all Pods at once and returns when their processes are gone; their
// namespaces go with the network. The node stops before.
func (r *Runtime) Stop() {
	r.mu.Lock()
	pods := make([]*pod, 0, len(r.pods))
	for _, p := range r.pods {
		pods = append(pods, p)
	}
	r.mu.Unlock()
	close(r.stopped)
	for _, p := range pods {
		p.begin()
		p.kill()
	}
	r.group.Wait()
}

// pod gives the Pod's place, which it makes at the first time.
func (r *Runtime) pod(ctx context.Context, object *corev1.Pod, address netip.Addr) (*pod, error) {
	name := cache.MetaObjectToName(object)
	r.mu.Lock()
	p := r.pods[name]
	r.mu.Unlock()
	if p != nil {
		if p.object.UID != object.UID {
			return nil, r.evict(name, p.object.UID)
		}
		return p, nil
	}
	namespace, err := r.site.Attach(ctx, address)
	if err != nil {
		return nil, err
	}
	p = newPod(object, address, namespace)
	if err := namespace.WriteEtc("resolv.conf", resolvConf(r.site.Address(), object.Namespace)); err != nil {
		return nil, errors.Join(err, namespace.Remove(ctx))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods[name] = p
	return p, nil
}

// evict ends an earlier Pod of the same name whose end was never seen.
func (r *Runtime) evict(name cache.ObjectName, old types.UID) error {
	r.End(name, 0)
	return fmt.Errorf("pod %s: the one before, %s, still runs", name, old)
}

// tell says that something of a Pod has ended, to whoever looks after it.
func (r *Runtime) tell(name cache.ObjectName) {
	select {
	case r.changed <- name:
	case <-r.stopped:
	}
}

func (r *Runtime) log(object *corev1.Pod, container string) string {
	return filepath.Join(r.dir, object.Namespace+"_"+object.Name+"_"+container+".log")
}

// resolvConf is a kubelet's for dnsPolicy ClusterFirst.
func resolvConf(server netip.Addr, namespace string) string {
	return fmt.Sprintf("nameserver %s\nsearch %s.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n", server, namespace)
}
