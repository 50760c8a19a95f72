package desired_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/agent/desired"
	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/fleet"
	"github.com/fleetling/fleetling/sources/render"
)

const example = "../../manifests/example"

func TestExampleFleetGivesEachClusterItsOwn(t *testing.T) {
	renderer := render.New(sources.DefaultLimits())
	digests := map[string]map[string]bool{}
	for name, labels := range map[string]map[string]string{
		"prod-ap-south": {"region": "ap-south", "tier": "canary", "fleet": "true"},
		"prod-eu-west":  {"region": "eu-west", "tier": "standard", "fleet": "true"},
	} {
		wanted, err := desired.FromTree(os.DirFS(example), fleet.Identity{Name: name, ClusterSet: "prod", Labels: labels}, true, renderer)
		require.NoError(t, err, name)
		assert.Empty(t, wanted.Selection.Differs, name)
		require.Len(t, wanted.AddOns, 6, name)
		for _, a := range wanted.AddOns {
			require.NoError(t, a.Err, "%s: %s", name, a.Name)
			assert.Empty(t, a.Warnings, "%s: %s", name, a.Name)
			if digests[a.Name] == nil {
				digests[a.Name] = map[string]bool{}
			}
			digests[a.Name][a.Digest] = true
		}
	}
	for name, different := range digests {
		want := 1
		if name == "platform" {
			want = 2
		}
		assert.Len(t, different, want, name)
	}
}
