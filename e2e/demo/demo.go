package main

import (
	"context"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/world"
)

// demo is what the steps hand on to each other.
type demo struct {
	world.Scope
	out io.Writer
	// assets is KUBEBUILDER_ASSETS.
	assets string

	programs build.ControlPlane
	fleet    *world.Fleet
	// head is the newest signed commit.
	head    string
	members []*world.Member
}

// steps is the demo in its order.
func (d *demo) steps() []step {
	return []step{
		{"The programs: a control plane from Go modules, and fleetling", d.buildPrograms},
		{"A fleet repository, signed", d.makeFleet},
		{"Two clusters start, manifests/ is installed in them", d.startClusters},
		{"Each has one node", d.showNodes},
		{"Two agents join: they check who signed", d.joinAgents},
		{"Two regions, two overlays", d.showOverlays},
		{"A signed commit arrives", d.pushSigned},
		{"An unsigned commit is refused, and nothing changes", d.pushUnsigned},
		{"The branch is mended: a signed commit on top of the last good one", d.mendBranch},
		{"The policies refuse Pods", d.refusePods},
		{"Changes by hand are repaired", d.repairByHand},
		{"Members and add-ons", d.showStatus},
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
