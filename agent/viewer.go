package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/fleetling/fleetling/agent/clusterset"
	"github.com/fleetling/fleetling/agent/desired"
	"github.com/fleetling/fleetling/sources/fleet"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/trust"
)

// Viewer looks at the whole fleet: at the signed list of clusters, and at what
// each of them says of itself in the registry. It writes to neither.
type Viewer struct {
	config   Config
	pipeline *desired.Pipeline
	verified *trust.Verified
	carrier  clusterset.Carrier
	// temporary is the folder to remove, or "".
	temporary string
}

// FleetView is the fleet at one moment.
type FleetView struct {
	ClusterSet string        `json:"clusterSet"`
	Revision   string        `json:"revision"`
	Signer     string        `json:"signer"`
	Clusters   []ClusterView `json:"clusters"`
}

// ClusterView is one cluster of it.
type ClusterView struct {
	clusterset.Row
	// Behind is by how many commits, on the first-parent line; nil where its
	// revision is not on it.
	Behind *int `json:"behind,omitempty"`
}

// Good is that all clusters say that they are ready, at the newest revision.
func (v FleetView) Good() bool {
	for _, c := range v.Clusters {
		if c.Status == nil || c.Problem != "" || c.Late || !c.Status.Ready || c.Behind == nil || *c.Behind > 0 {
			return false
		}
	}
	return true
}

// NewViewer reads the configuration. Without a data folder it uses a temporary
// one, which Close removes.
func NewViewer(configFile, dataDir string, proxy httpproxy.Config) (*Viewer, error) {
	config, err := ReadConfig(configFile)
	if err != nil {
		return nil, err
	}
	v := &Viewer{config: config}
	v.config.Remote.Proxy = proxy
	if dataDir == "" {
		if dataDir, err = os.MkdirTemp("", "fleetling-fleet-"); err != nil {
			return nil, err
		}
		v.temporary = dataDir
	}
	v.config.DataDir = dataDir
	v.pipeline = &desired.Pipeline{
		Fetcher: git.Fetch, Remote: v.config.Remote, DataDir: dataDir,
		Signers: config.Trust.Signers, Commit: config.Trust.Commit, Revoked: config.Trust.Revoked,
	}
	return v, nil
}

// Close gives back what the viewer holds.
func (v *Viewer) Close() {
	if v.carrier != nil {
		_ = v.carrier.Close()
	}
	if v.temporary != "" {
		_ = os.RemoveAll(v.temporary)
	}
}

// errNoRegistry is that the fleet shares nothing.
var errNoRegistry = errors.New("fleetling.yaml names no registry: clusters tell nobody how they are; see `fleetling status` in each")

// Look fetches, verifies and reads.
func (v *Viewer) Look(ctx context.Context) (FleetView, error) {
	f, err := v.fleet(ctx)
	if err != nil {
		return FleetView{}, err
	}
	if f.Registry == nil {
		return FleetView{}, errNoRegistry
	}
	list := listOf(f, viewerName)
	if v.carrier == nil {
		if v.carrier, err = (carriers{v.config}).open(*list.Registry, viewerName); err != nil {
			return FleetView{}, fmt.Errorf("registry: %w", err)
		}
	}
	rows, err := clusterset.Look(ctx, v.carrier, list, time.Now())
	if err != nil {
		return FleetView{}, err
	}
	return v.view(ctx, f.ClusterSet, rows)
}

// viewerName is what carriers know a viewer by. It puts nothing.
const viewerName = "viewer"

func (v *Viewer) fleet(ctx context.Context) (fleet.Fleet, error) {
	have := ""
	if v.verified != nil {
		have = v.verified.Commit
	}
	result, err := v.pipeline.Fetch(ctx, have)
	if err != nil {
		return fleet.Fleet{}, err
	}
	var pin *trust.Pin
	if v.verified != nil {
		pin = &v.verified.Pin
	}
	verified, err := v.pipeline.Verify(ctx, pin, result.Head, time.Now())
	if err != nil {
		return fleet.Fleet{}, err
	}
	v.verified = &verified
	return v.pipeline.Fleet(ctx, verified)
}

func (v *Viewer) view(ctx context.Context, clusterSet string, rows []clusterset.Row) (FleetView, error) {
	line, err := v.pipeline.Line(ctx, v.verified.Commit, maxBehind)
	if err != nil {
		return FleetView{}, err
	}
	seen := FleetView{ClusterSet: clusterSet, Revision: v.verified.Commit, Signer: v.verified.Signer.Name}
	for _, row := range rows {
		c := ClusterView{Row: row}
		if row.Status != nil {
			if behind, ok := line[row.Status.Revision]; ok {
				c.Behind = &behind
			}
		}
		seen.Clusters = append(seen.Clusters, c)
	}
	return seen, nil
}

// maxBehind is how many commits are counted.
const maxBehind = 1000
