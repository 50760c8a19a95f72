package clusterset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/network"
)

// Options says what a set is.
type Options struct {
	// Names are the clusters'.
	Names []string
	// Progress is told what is up, a line each; nil is nobody.
	Progress io.Writer
}

// Set is clusters that have a network. Stop ends it.
type Set struct {
	Network *network.Network
	// Hub is the site outside of all clusters.
	Hub *network.Site
	// Clusters are in the order of their names in Options.
	Clusters []*Cluster

	dir      string
	progress *progress

	mu        sync.Mutex
	published []*network.Forwarder
}

// Start starts clusters at the same time and returns when their API servers,
// nodes, kube-proxies and DNS servers are ready. ctx bounds only the start. The clusters
// belong to host, too; whoever calls has a place for each, see harness.Places.
func Start(ctx context.Context, host *cluster.Host, options Options) (*Set, error) {
	s := &Set{progress: newProgress(options.Progress)}
	if err := s.start(ctx, host, options); err != nil {
		return nil, errors.Join(fmt.Errorf("clusterset: %w", err), s.Stop())
	}
	return s, nil
}

// Cluster gives a cluster by its name, or nil.
func (s *Set) Cluster(name string) *Cluster {
	for _, c := range s.Clusters {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// Publish makes a server of this process part of the hub, and gives the address
// that the clusters reach it under, of the same port. target is an IP address and port.
func (s *Set) Publish(ctx context.Context, target string) (string, error) {
	_, port, err := net.SplitHostPort(target)
	if err != nil {
		return "", fmt.Errorf("publish %s: %w", target, err)
	}
	forwarder, err := s.Hub.Forward(ctx, net.JoinHostPort(s.Hub.Address().String(), port), target)
	if err != nil {
		return "", fmt.Errorf("publish %s: %w", target, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published = append(s.published, forwarder)
	return forwarder.Address(), nil
}

// Stop ends the clusters, all that runs in them, and the network.
func (s *Set) Stop() error {
	for _, c := range s.Clusters {
		c.stop()
	}
	s.mu.Lock()
	published := s.published
	s.published = nil
	s.mu.Unlock()
	for _, forwarder := range published {
		forwarder.Close()
	}
	var err error
	if s.Network != nil {
		err = s.Network.Remove()
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

func (s *Set) start(ctx context.Context, host *cluster.Host, options Options) error {
	programs, err := findPrograms()
	if err != nil {
		return err
	}
	definitions, err := definitions()
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "fleetling-clusterset-"); err != nil {
		return err
	}
	if s.Network, err = network.New(ctx); err != nil {
		return err
	}
	if s.Hub, err = s.Network.Add(ctx, "hub"); err != nil {
		return err
	}
	group, starting := errgroup.WithContext(ctx)
	for _, name := range options.Names {
		site, err := s.Network.Add(ctx, name)
		if err != nil {
			return errors.Join(err, group.Wait())
		}
		c := &Cluster{Site: site, name: name, dir: s.dir, programs: programs, progress: s.progress}
		s.Clusters = append(s.Clusters, c)
		group.Go(func() error {
			if err := c.start(starting, host, definitions); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// progress writes what is up and how long it took.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

func newProgress(out io.Writer) *progress {
	if out == nil {
		out = io.Discard
	}
	return &progress{out: out, start: time.Now()}
}

func (p *progress) say(cluster, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "clusterset: %s: %s, %s\n", cluster, what, time.Since(p.start).Round(100*time.Millisecond))
}
