package network

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
)

// Site is a namespace that stands for a cluster's only node, or for the world
// outside of all clusters.
type Site struct {
	*Namespace
	number int
	pods   netip.Prefix
	// attached counts the namespaces that were ever attached.
	attached atomic.Int64
}

// Pods is the range of the site's own address, which is the first, and of all that
// is attached to it.
func (s *Site) Pods() netip.Prefix { return s.pods }

// Address is the site's own, which all sites can reach.
func (s *Site) Address() netip.Addr { return s.pods.Addr().Next() }

func (s *Site) setUp(ctx context.Context) error {
	if err := ip(ctx, s.name, fmt.Sprintf("addr add %s/32 dev lo", s.Address())); err != nil {
		return err
	}
	return s.within(func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
	})
}

// Attach makes a namespace with one address of the site's range. Its way to
// everywhere is the site.
func (s *Site) Attach(ctx context.Context, address netip.Addr) (*Namespace, error) {
	if !s.pods.Contains(address) || address == s.Address() {
		return nil, fmt.Errorf("attach %s: not an address of a Pod in %s", address, s.pods)
	}
	number := s.attached.Add(1)
	attached, err := s.network.namespace(ctx, fmt.Sprintf("%d-%d", s.number, number))
	if err != nil {
		return nil, fmt.Errorf("attach %s: %w", address, err)
	}
	// At most 15 letters (IFNAMSIZ).
	cable := fmt.Sprintf("pod%d", number)
	if err := s.plug(ctx, attached, cable, address); err != nil {
		return nil, fmt.Errorf("attach %s: %w", address, err)
	}
	attached.detach = func(ctx context.Context) error { return s.unplug(ctx, cable) }
	return attached, nil
}

func (s *Site) plug(ctx context.Context, attached *Namespace, cable string, address netip.Addr) error {
	err := ip(ctx, "", fmt.Sprintf("link add %s netns %s type veth peer name eth0 netns %s", cable, s.name, attached.name))
	if err != nil {
		return err
	}
	if err := ip(ctx, s.name,
		fmt.Sprintf("link set %s up", cable),
		fmt.Sprintf("route add %s/32 dev %s src %s", address, cable, s.Address())); err != nil {
		return err
	}
	return ip(ctx, attached.name,
		"link set eth0 up",
		fmt.Sprintf("addr add %s/32 dev eth0", address),
		fmt.Sprintf("route add %s dev eth0", s.Address()),
		fmt.Sprintf("route add default via %s dev eth0", s.Address()))
}

func (s *Site) unplug(ctx context.Context, cable string) error {
	if !exists(netns + "/" + s.name) {
		// With the site all its cables are gone.
		return nil
	}
	return ip(ctx, s.name, "link delete "+cable)
}
