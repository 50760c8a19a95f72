package desired_test

import (
	"os"
	"path/filepath"
	"strings"
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

func TestEntryOfTheExampleFleetWithALabelOffItsListIsRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(example)))
	entry := filepath.Join(dir, "clusters", "prod-eu-west.yaml")
	content, err := os.ReadFile(entry)
	require.NoError(t, err)
	changed := strings.Replace(string(content), "region: eu-west", "region: eu-wset", 1)
	require.NotEqual(t, string(content), changed)
	require.NoError(t, os.WriteFile(entry, []byte(changed), 0o644))

	_, err = desired.FromTree(os.DirFS(dir), fleet.Identity{Name: "prod-eu-west", ClusterSet: "prod"}, true, render.New(sources.DefaultLimits()))
	assert.Equal(t, sources.InvalidLabelValue, sources.ReasonOf(err))
	assert.ErrorContains(t, err, "clusters/prod-eu-west.yaml:5: ")
}
