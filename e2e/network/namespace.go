package network

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Folders of ip-netns(8).
const (
	netns = "/run/netns"
	etc   = "/etc/netns"
)

// Namespace is a network namespace.
type Namespace struct {
	name    string
	network *Network
	// detach takes the other end of its cable away; nil where there is none.
	detach func(ctx context.Context) error

	mu      sync.Mutex
	removed bool
}

// namespace makes one that holds only loopback.
func (n *Network) namespace(ctx context.Context, name string) (*Namespace, error) {
	made := &Namespace{name: n.prefix + name, network: n}
	// Noted before it is there: a half-made one is removed too.
	n.mu.Lock()
	if n.namespaces[made.name] != nil {
		n.mu.Unlock()
		return nil, fmt.Errorf("there is a namespace %s already", name)
	}
	n.namespaces[made.name] = made
	n.mu.Unlock()
	if err := ip(ctx, "", "netns add "+made.name); err != nil {
		return nil, err
	}
	return made, ip(ctx, made.name, "link set lo up")
}

// Name is what `ip netns exec` and process.Command call it.
func (ns *Namespace) Name() string { return ns.name }

// WriteEtc writes a file that processes started in the namespace from now on see
// as /etc/NAME, where the machine has one of that name.
func (ns *Namespace) WriteEtc(name, content string) error {
	dir := filepath.Join(etc, ns.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644)
}

// Remove ends the namespace; processes that are still in it keep it. A second
// call does nothing.
func (ns *Namespace) Remove(ctx context.Context) error {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.removed {
		return nil
	}
	if ns.detach != nil {
		// At once: the end of a namespace takes its interfaces away some time later.
		if err := ns.detach(ctx); err != nil {
			return err
		}
		ns.detach = nil
	}
	if err := remove(ctx, ns.name); err != nil {
		return err
	}
	ns.removed = true
	ns.network.mu.Lock()
	defer ns.network.mu.Unlock()
	delete(ns.network.namespaces, ns.name)
	return nil
}

// remove ends a namespace by its name; one that is gone is no error.
func remove(ctx context.Context, name string) error {
	if err := os.RemoveAll(filepath.Join(etc, name)); err != nil {
		return err
	}
	if err := ip(ctx, "", "netns delete "+name); err != nil && exists(filepath.Join(netns, name)) {
		return err
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
