package main

import (
	"context"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/clusterset"
	"github.com/fleetling/fleetling/e2e/world"
)

// demo is what the steps hand on to each other.
type demo struct {
	world.Scope
	out io.Writer
	// assets is KUBEBUILDER_ASSETS.
	assets string

	programs build.ControlPlane
	set      *clusterset.Set
	fleet    *world.Fleet
	// keys are the member keys, by cluster.
	keys map[string][]byte
	// head is the newest signed commit.
	head    string
	members []*world.Member
}

// steps is the demo in its order.
func (d *demo) steps() []step {
	return []step{
		{"The programs: a control plane from Go modules, and fleetling", d.buildPrograms},
		{"Two clusters start", d.startClusters},
		{"A fleet repository, signed", d.makeFleet},
		{"manifests/ is installed in both", d.install},
		{"Each has one node", d.showNodes},
		{"Two agents join: they check who signed", d.joinAgents},
		{"Two regions, two overlays", d.showOverlays},
		{"A signed commit arrives", d.pushSigned},
		{"An unsigned commit is refused, and nothing changes", d.pushUnsigned},
		{"The branch is mended: a signed commit on top of the last good one", d.mendBranch},
		{"The policies refuse Pods", d.refusePods},
		{"Changes by hand are repaired", d.repairByHand},
		{"Members and add-ons", d.showStatus},
		{"A Service of prod-ap-south answers in prod-eu-west", d.shareService},
		{"The whole fleet, seen from one cluster", d.showFleet},
		{"prod-eu-west is cut off from the registry: nothing changes there", d.cutRegistry},
	}
}

// each does the same in all clusters, side by side. f's first argument is the
// cluster's place in d.members.
func (d *demo) each(ctx context.Context, f func(context.Context, int, *world.Member) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, m := range d.members {
		group.Go(func() error {
			// Fatalf must end the goroutine that it is called in.
			return attempt(ctx, func(ctx context.Context) error { return f(ctx, i, m) })
		})
	}
	return group.Wait()
}
