package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/process"
)

// Host is what the clusters of one test process share: the programs, one
// etcd, and a folder that is gone after Stop.
type Host struct {
	programs build.ControlPlane
	dir      string
	etcd     *process.Process
	endpoint string

	mu       sync.Mutex
	clusters []*Cluster
}

// NewHost starts etcd. ctx bounds only the start.
func NewHost(ctx context.Context, programs build.ControlPlane) (*Host, error) {
	dir, err := os.MkdirTemp("", "fleetling-e2e-")
	if err != nil {
		return nil, err
	}
	h := &Host{programs: programs, dir: dir}
	if err := h.startEtcd(ctx); err != nil {
		h.Stop()
		return nil, fmt.Errorf("etcd: %w", err)
	}
	return h, nil
}

func (h *Host) startEtcd(ctx context.Context) error {
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	h.endpoint = "http://" + loopback(port)
	h.etcd, err = start(h.programs.Etcd, filepath.Join(h.dir, "etcd.log"),
		"--data-dir="+filepath.Join(h.dir, "etcd"),
		"--unsafe-no-fsync",
		"--listen-client-urls="+h.endpoint,
		"--advertise-client-urls="+h.endpoint,
		"--listen-peer-urls=http://127.0.0.1:0",
		"--log-level=warn",
	)
	if err != nil {
		return err
	}
	return await(ctx, h.etcd, func(ctx context.Context) error { return healthy(ctx, h.endpoint+"/health") })
}

// Stop stops all clusters of the host and etcd, and removes the folder.
func (h *Host) Stop() {
	h.mu.Lock()
	clusters := h.clusters
	h.clusters = nil
	h.mu.Unlock()
	for _, c := range clusters {
		c.Stop()
	}
	if h.etcd != nil {
		h.etcd.Kill()
	}
	// What can't be removed from the temporary folder stays there.
	_ = os.RemoveAll(h.dir)
}

// add gives a cluster its number, which makes its folder, its etcd prefix and
// its Service addresses its own.
func (h *Host) add(c *Cluster) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.clusters)
	if n >= maxClusters {
		return 0, errors.New("too many clusters on one host: " + strconv.Itoa(n))
	}
	h.clusters = append(h.clusters, c)
	return n, nil
}
