package main

import (
	"context"
	"net/netip"

	"golang.org/x/sync/errgroup"

	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/node"
)

// site is one of the demo's clusters.
type site struct {
	name, podCIDR, serviceCIDR string
}

// startClusters starts the two side by side.
func (d *demo) startClusters(ctx context.Context) error {
	sites := []site{
		{"prod-ap-south", "10.244.0.0/24", "10.96.0.0/16"},
		{"prod-eu-west", "10.244.1.0/24", "10.97.0.0/16"},
	}
	host, err := cluster.NewHost(ctx, d.programs)
	if err != nil {
		return err
	}
	d.Cleanup(host.Stop)
	d.clusters = make([]*cluster.Cluster, len(sites))
	group, ctx := errgroup.WithContext(ctx)
	for i, s := range sites {
		group.Go(func() error {
			var err error
			d.clusters[i], err = d.startCluster(ctx, host, s)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, c := range d.clusters {
		d.printf("%s: %s", c.Name(), c.Server())
	}
	d.printf("note: %s", node.Notice)
	return nil
}

func (d *demo) startCluster(ctx context.Context, host *cluster.Host, s site) (*cluster.Cluster, error) {
	c, err := host.Start(ctx, cluster.Options{Name: s.name, ServiceCIDR: s.serviceCIDR})
	if err != nil {
		return nil, err
	}
	prefix, err := netip.ParsePrefix(s.podCIDR)
	if err != nil {
		return nil, err
	}
	n, err := node.Start(ctx, c.Config(), node.Options{Name: s.name + "-node", PodCIDR: prefix})
	if err != nil {
		return nil, err
	}
	d.Cleanup(n.Stop)
	return c, nil
}
