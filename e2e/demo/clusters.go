package main

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/fleetling/fleetling/discovery/record"
	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/clusterset"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/node"
	"github.com/fleetling/fleetling/e2e/world"
	"github.com/fleetling/fleetling/sources/gittest"
)

// site is one of the demo's clusters.
type site struct{ name, region, tier string }

// sites are told at birth what their entries in the example say too.
func sites() []site {
	return []site{
		{"prod-ap-south", "ap-south", "canary"},
		{"prod-eu-west", "eu-west", "standard"},
	}
}

func (s site) labels() map[string]string {
	return map[string]string{"region": s.region, "tier": s.tier, "fleet": "true"}
}

func (d *demo) member(s site, key []byte, url string) world.MemberOptions {
	c := d.set.Cluster(s.name)
	return world.MemberOptions{
		Name: s.name, Labels: s.labels(), URL: url, FirstSigners: []gittest.Key{d.fleet.Key},
		Cluster: c.Cluster, Namespace: c.Site.Name(), MemberKey: key,
	}
}

// startClusters starts the two side by side, in network namespaces of their own.
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
	options := clusterset.Options{}
	for _, s := range sites {
		options.Names = append(options.Names, s.name)
	}
	if d.set, err = clusterset.Start(ctx, host, options); err != nil {
		return err
	}
	d.Cleanup(func() { _ = d.set.Stop() })
	for _, c := range d.set.Clusters {
		d.printf("%s: %s, Pods in %s", c.Name(), c.Server(), c.Site.Pods())
	}
	d.printf("note: %s", node.Notice)
	d.printf("Only Pods of the images alpine/socat and nicolaka/netshoot run here, as processes.")
	return nil
}

// makeFleet copies the example, with what only this run can know: a signer's key,
// the clusters' address ranges and member keys, and where the registry is.
func (d *demo) makeFleet(ctx context.Context) error {
	d.fleet = world.NewFleet(d)
	d.fleet.Load(d, world.Example(d))
	registry, err := d.publish(ctx, world.NewRegistry(ctx, d))
	if err != nil {
		return err
	}
	d.fleet.Replace(d, "fleetling.yaml", "https://git.example.com/registry.git", registry)
	d.keys = map[string][]byte{}
	for _, c := range d.set.Clusters {
		private, public, err := record.NewKey()
		if err != nil {
			return err
		}
		d.keys[c.Name()] = private
		file := "clusters/" + c.Name() + ".yaml"
		d.fleet.Replace(d, file, exampleRange(c.Name()), c.Site.Pods().String())
		d.fleet.Replace(d, file, "spec:\n", fmt.Sprintf("  annotations: {fleetling.dev/member-keys: %q}\nspec:\n", public))
	}
	d.head = d.fleet.Push("the example fleet")
	d.printf("manifests/example, with signers/%s and the clusters' member keys", d.fleet.Key.File())
	d.printf("%s at %s", d.fleet.Server.URL, d.head[:12])
	d.printf("the registry, a repository of its own: %s", registry)
	return nil
}

// exampleRange is what a cluster's entry says in the example.
func exampleRange(name string) string {
	return map[string]string{"prod-ap-south": "10.244.0.0/16", "prod-eu-west": "10.245.0.0/16"}[name]
}

// publish gives a server's URL as the clusters see it.
func (d *demo) publish(ctx context.Context, server *gittest.HTTPServer) (string, error) {
	address, err := d.set.Publish(ctx, server.Address())
	if err != nil {
		return "", err
	}
	return strings.Replace(server.URL, server.Address(), address, 1), nil
}

// install applies manifests/ in both.
func (d *demo) install(ctx context.Context) error {
	url, err := d.publish(ctx, d.fleet.Server)
	if err != nil {
		return err
	}
	d.members = make([]*world.Member, len(sites()))
	group, ctx := errgroup.WithContext(ctx)
	for i, s := range sites() {
		group.Go(func() error {
			return attempt(ctx, func(ctx context.Context) error {
				d.members[i] = world.Prepare(ctx, d, nil, d.member(s, d.keys[s.name], url))
				return nil
			})
		})
	}
	return group.Wait()
}
