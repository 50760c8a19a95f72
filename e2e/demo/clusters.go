package main

import (
	"context"
	"net/netip"

	"golang.org/x/sync/errgroup"

	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/node"
	"github.com/fleetling/fleetling/e2e/world"
	"github.com/fleetling/fleetling/sources/gittest"
)

// site is one of the demo's clusters.
type site struct{ name, region, tier, pods string }

// sites are told at birth what their entries in the example say too.
func sites() []site {
	return []site{
		{"prod-ap-south", "ap-south", "canary", "10.244.0.0/24"},
		{"prod-eu-west", "eu-west", "standard", "10.245.0.0/24"},
	}
}

func (s site) labels() map[string]string {
	return map[string]string{"region": s.region, "tier": s.tier, "fleet": "true"}
}

func (d *demo) member(s site) world.MemberOptions {
	return world.MemberOptions{
		Name: s.name, Labels: s.labels(), Node: netip.MustParsePrefix(s.pods),
		URL: d.fleet.Server.URL, FirstSigners: []gittest.Key{d.fleet.Key},
	}
}

// startClusters starts the two side by side.
func (d *demo) startClusters(ctx context.Context) error {
	sites := sites()
	release, err := harness.Places(ctx, len(sites))
	if err != nil {
		return err
	}
	d.Cleanup(release)
	host, err := cluster.NewHost(ctx, d.programs)
	if err != nil {
		return err
	}
	d.Cleanup(host.Stop)
	d.members = make([]*world.Member, len(sites))
	group, ctx := errgroup.WithContext(ctx)
	for i, s := range sites {
		group.Go(func() error {
			return attempt(ctx, func(ctx context.Context) error {
				d.members[i] = world.Prepare(ctx, d, host, d.member(s))
				return nil
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, m := range d.members {
		d.printf("%s: %s", m.Name(), m.Server())
	}
	d.printf("note: %s", node.Notice)
	return nil
}
