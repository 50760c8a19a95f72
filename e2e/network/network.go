package network

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// maxSites is how many ranges 172.16.0.0/24 to 172.16.255.0/24 are.
	maxSites = 256
	// removal is the most that it takes on a machine that is busy with builds.
	removal = time.Minute
)

// Network is sites and the links between them. Remove ends it.
type Network struct {
	prefix string
	// adding is held by Add: each site is linked to all before it.
	adding sync.Mutex

	mu         sync.Mutex
	sites      []*Site
	namespaces map[string]*Namespace
}

// New makes a network without a site, and removes what killed processes left.
func New(ctx context.Context) (*Network, error) {
	if err := removeLeftovers(ctx); err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	pid := os.Getpid()
	started, err := startOf(pid)
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	owner := owner{pid: pid, start: started}
	// One process may have several.
	prefix := owner.prefix() + strconv.FormatUint(uint64(rand.Uint32()), 36) + "-"
	return &Network{prefix: prefix, namespaces: map[string]*Namespace{}}, nil
}

// Add makes a site and links it to all sites that there are.
func (n *Network) Add(ctx context.Context, name string) (*Site, error) {
	n.adding.Lock()
	defer n.adding.Unlock()
	n.mu.Lock()
	number := len(n.sites)
	others := slices.Clone(n.sites)
	n.mu.Unlock()
	if number >= maxSites {
		return nil, fmt.Errorf("site %s: there are %d already", name, maxSites)
	}
	prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 16, byte(number), 0}), 24)
	namespace, err := n.namespace(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("site %s: %w", name, err)
	}
	s := &Site{Namespace: namespace, number: number, pods: prefix}
	if err := s.setUp(ctx); err != nil {
		return nil, fmt.Errorf("site %s: %w", name, err)
	}
	for _, other := range others {
		if err := s.To(other).connect(ctx); err != nil {
			return nil, fmt.Errorf("site %s: link to %s: %w", name, other.name, err)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sites = append(n.sites, s)
	return s, nil
}

// Isolate cuts all links of a site.
func (n *Network) Isolate(ctx context.Context, s *Site) error {
	return n.each(s, func(l Link) error { return l.Cut(ctx) })
}

// Rejoin heals all links of a site.
func (n *Network) Rejoin(ctx context.Context, s *Site) error {
	return n.each(s, func(l Link) error { return l.Heal(ctx) })
}

// Remove ends all namespaces. Whoever started processes in them stops those first.
func (n *Network) Remove() error {
	// Also after the context of the test has ended.
	ctx, cancel := context.WithTimeout(context.Background(), removal)
	defer cancel()
	n.mu.Lock()
	namespaces := slices.Collect(maps.Values(n.namespaces))
	n.sites = nil
	n.mu.Unlock()
	var errs []error
	for _, namespace := range namespaces {
		errs = append(errs, namespace.Remove(ctx))
	}
	return errors.Join(errs...)
}

func (n *Network) each(s *Site, do func(Link) error) error {
	n.mu.Lock()
	others := slices.Clone(n.sites)
	n.mu.Unlock()
	for _, other := range others {
		if other == s {
			continue
		}
		if err := do(s.To(other)); err != nil {
			return err
		}
	}
	return nil
}
