package harness

import (
	"context"
	"os"
	"path/filepath"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/filelock"
)

// maxClusters is how many clusters of all suites fit on a machine at once.
const maxClusters = 3

// NewHost starts a host for clusters with the control plane that was built
// before, or with what KUBEBUILDER_ASSETS holds of it.
func NewHost(ctx context.Context) (*cluster.Host, error) {
	programs, err := Programs()
	if err != nil {
		return nil, err
	}
	return cluster.NewHost(ctx, programs)
}

// Programs finds the control plane that was built before, or what
// KUBEBUILDER_ASSETS holds of it.
func Programs() (build.ControlPlane, error) {
	root, err := build.Root()
	if err != nil {
		return build.ControlPlane{}, err
	}
	return build.FindControlPlane(root, os.Getenv("KUBEBUILDER_ASSETS"))
}

// CoreDNS finds the path of the CoreDNS that was built before.
func CoreDNS() (string, error) {
	root, err := build.Root()
	if err != nil {
		return "", err
	}
	return build.FindCoreDNS(root)
}

// Places waits until n more clusters fit on the machine, counting those of
// other test processes, and gives what gives the places back.
func Places(ctx context.Context, n int) (release func(), err error) {
	root, err := build.Root()
	if err != nil {
		return nil, err
	}
	slots := filelock.Slots{Dir: filepath.Join(build.Cache(root), "clusters"), Count: maxClusters}
	return slots.Acquire(ctx, n)
}

// Binary builds the binary that ships and gives its path.
func Binary(ctx context.Context) (string, error) {
	root, err := build.Root()
	if err != nil {
		return "", err
	}
	return build.Fleetling(ctx, root)
}
