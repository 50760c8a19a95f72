package node

import (
	"errors"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

var errAddressesUsedUp = errors.New("all addresses of the Pod CIDR are used")

// addresses gives each Pod an address. One goroutine uses it.
type addresses struct {
	prefix netip.Prefix
	// node is the first address of the range, the node's own.
	node netip.Addr
	last netip.Addr
	pods map[cache.ObjectName]netip.Addr
	used map[netip.Addr]bool
}

func newAddresses(prefix netip.Prefix) *addresses {
	node := prefix.Masked().Addr().Next()
	return &addresses{
		prefix: prefix, node: node, last: node,
		pods: map[cache.ObjectName]netip.Addr{}, used: map[netip.Addr]bool{node: true},
	}
}

// take gives the Pod's address: the one it has, or the next free one. An address is
// used again as late as possible, so that a reader who is late can't take one
// Pod for another.
func (a *addresses) take(name cache.ObjectName) (netip.Addr, error) {
	if address, found := a.pods[name]; found {
		return address, nil
	}
	for candidate := a.after(a.last); candidate != a.last; candidate = a.after(candidate) {
		if !a.used[candidate] {
			a.keep(name, candidate)
			a.last = candidate
			return candidate, nil
		}
	}
	return netip.Addr{}, errAddressesUsedUp
}

// keep notes an address that a Pod has.
func (a *addresses) keep(name cache.ObjectName, address netip.Addr) {
	a.pods[name] = address
	a.used[address] = true
}

func (a *addresses) release(name cache.ObjectName) {
	delete(a.used, a.pods[name])
	delete(a.pods, name)
}

// after walks the range in a circle.
func (a *addresses) after(address netip.Addr) netip.Addr {
	if next := address.Next(); a.prefix.Contains(next) {
		return next
	}
	return a.node
}

// address gives the Pod its address. Those that the Pods of an earlier process
// have are noted first.
func (n *Node) address(pod *corev1.Pod) (netip.Addr, error) {
	if pod.Spec.HostNetwork {
		return n.addresses.node, nil
	}
	if len(n.addresses.pods) == 0 {
		if err := n.keepAddresses(); err != nil {
			return netip.Addr{}, err
		}
	}
	return n.addresses.take(cache.MetaObjectToName(pod))
}

func (n *Node) keepAddresses() error {
	pods, err := n.pods.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != n.options.Name || pod.Spec.HostNetwork || pod.Status.PodIP == "" {
			continue
		}
		address, err := netip.ParseAddr(pod.Status.PodIP)
		if err != nil {
			return err
		}
		n.addresses.keep(cache.MetaObjectToName(pod), address)
	}
	return nil
}
