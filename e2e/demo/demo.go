package main

import (
	"context"
	"io"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/cluster"
)

// demo is what the steps hand on to each other.
type demo struct {
	scope
	out io.Writer
	// assets is KUBEBUILDER_ASSETS.
	assets string

	programs build.ControlPlane
	clusters []*cluster.Cluster
}

// steps is the demo in its order; each step has a file of its name.
func (d *demo) steps() []step {
	return []step{
		{"The control plane is built from Go modules", d.buildControlPlane},
		{"Two clusters start", d.startClusters},
		{"Each has one node", d.showNodes},
	}
}

// keep waits for Ctrl-C.
func (d *demo) keep(ctx context.Context) error {
	for _, c := range d.clusters {
		d.printf("KUBECONFIG=%s kubectl get nodes", c.KubeconfigFile())
	}
	d.printf("Ctrl-C stops everything")
	<-ctx.Done()
	return nil
}
