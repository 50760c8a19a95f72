package clusterset

import (
	"context"
	"fmt"
	"net/url"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/network"
	"github.com/fleetling/fleetling/e2e/node"
	"github.com/fleetling/fleetling/e2e/pods"
	"github.com/fleetling/fleetling/e2e/process"
)

// Cluster is a cluster at a site of its own.
type Cluster struct {
	*cluster.Cluster
	// Site is where its node, its Pods and its programs are.
	Site *network.Site
	// Pods runs its Pods.
	Pods *pods.Runtime

	name, dir string
	programs  programs
	progress  *progress

	node      *node.Node
	forwarder *network.Forwarder
	processes []*process.Process
}

// programs is what runs in a site.
type programs struct {
	proxy   build.Program
	coreDNS string
}

func findPrograms() (programs, error) {
	plane, err := harness.Programs()
	if err != nil {
		return programs{}, err
	}
	coreDNS, err := harness.CoreDNS()
	return programs{proxy: plane.Proxy, coreDNS: coreDNS}, err
}

// Name is the cluster's name, also before its control plane is up.
func (c *Cluster) Name() string { return c.name }

// Exec runs a command in one of its Pods.
func (c *Cluster) Exec(ctx context.Context, namespace, name string, command ...string) (pods.Result, error) {
	return c.Pods.Exec(ctx, namespace, name, command...)
}

func (c *Cluster) start(ctx context.Context, host *cluster.Host, definitions []string) error {
	var err error
	if c.Cluster, err = host.Start(ctx, cluster.Options{Name: c.name}); err != nil {
		return err
	}
	c.progress.say(c.name, "control plane is up")
	if err := c.forward(ctx); err != nil {
		return err
	}
	if err := define(ctx, c.Config(), definitions); err != nil {
		return err
	}
	// What the site itself asks, as Pods of the host's network would.
	if err := c.Site.WriteEtc("resolv.conf", fmt.Sprintf("nameserver %s\n", c.Site.Address())); err != nil {
		return err
	}
	if err := c.startCoreDNS(ctx); err != nil {
		return fmt.Errorf("CoreDNS: %w", err)
	}
	c.progress.say(c.name, "CoreDNS is ready")
	c.Pods = pods.New(c.Site, c.dir)
	c.node, err = node.Start(ctx, c.Config(), node.Options{Name: c.nodeName(), PodCIDR: c.Site.Pods(), Runtime: c.Pods})
	if err != nil {
		return err
	}
	c.progress.say(c.name, "node is ready")
	if err := c.startProxy(ctx); err != nil {
		return fmt.Errorf("kube-proxy: %w", err)
	}
	c.progress.say(c.name, "kube-proxy is ready")
	return nil
}

func (c *Cluster) nodeName() string { return c.name + "-node" }

// forward gives the site its API server, at the address that it has outside.
func (c *Cluster) forward(ctx context.Context) error {
	server, err := url.Parse(c.Server())
	if err != nil {
		return err
	}
	c.forwarder, err = c.Site.Forward(ctx, server.Host, server.Host)
	return err
}

func (c *Cluster) stop() {
	if c.node != nil {
		c.node.Stop()
	}
	if c.Pods != nil {
		c.Pods.Stop()
	}
	for _, p := range c.processes {
		p.Kill()
	}
	if c.forwarder != nil {
		c.forwarder.Close()
	}
	if c.Cluster != nil {
		c.Stop()
	}
}
