package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/agent"
	"github.com/fleetling/fleetling/agent/clusterset"
	"github.com/fleetling/fleetling/discovery/record"
)

func fleetSeen() agent.FleetView {
	behind := 2
	return agent.FleetView{
		ClusterSet: "prod", Revision: "0123456789abcdef0123456789abcdef01234567", Signer: "alice",
		Clusters: []agent.ClusterView{
			{Row: clusterset.Row{
				Cluster: "a", Age: 7 * time.Second, Key: "SHA256:k", Exports: []string{"shop/catalog"},
				Status: &record.Status{Revision: "fedcba9876543210fedcba9876543210fedcba98", Ready: false, Reason: "Unhealthy", Message: "web is not ready", AddOns: 3, Failing: []string{"web"}},
			}, Behind: &behind},
			{Row: clusterset.Row{Cluster: "b", Problem: "nothing in the registry yet"}},
		},
	}
}

func TestFleetIsARowPerCluster(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, showFleet(&out, fleetSeen(), ""))
	assert.Equal(t, `ClusterSet prod at 0123456789ab, signed by alice

CLUSTER  READY    REVISION      BEHIND  ADD-ONS  FAILING  EXPORTS  AGE
a        False    fedcba987654  2       3        web      1        7s
b        Unknown  -             -       -        -        -        -
`, out.String())

	out.Reset()
	require.NoError(t, showFleet(&out, fleetSeen(), "wide"))
	assert.Contains(t, out.String(), "Unhealthy: web is not ready")
	assert.Contains(t, out.String(), "nothing in the registry yet")
	for _, format := range []string{"json", "yaml"} {
		out.Reset()
		require.NoError(t, showFleet(&out, fleetSeen(), format))
		assert.Contains(t, out.String(), "shop/catalog", format)
	}
	assert.ErrorContains(t, showFleet(&out, fleetSeen(), "xml"), "wide, json or yaml")
}

func TestAFleetIsGoodWhenAllAreReadyAtTheNewestRevision(t *testing.T) {
	seen, zero := fleetSeen(), 0
	assert.False(t, seen.Good())
	seen.Clusters = seen.Clusters[:1]
	seen.Clusters[0].Status.Ready, seen.Clusters[0].Behind = true, &zero
	assert.True(t, seen.Good())
	seen.Clusters[0].Late = true
	assert.False(t, seen.Good())
}

func TestKeygenWritesAPrivateKeyOnceAndPrintsTheLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	var out, notes bytes.Buffer
	run := func() error {
		cmd := keygenCommand(World{Out: &out, Err: &notes})
		cmd.SetArgs([]string{file})
		return cmd.Execute()
	}
	require.NoError(t, run())
	private, err := os.ReadFile(file)
	require.NoError(t, err)
	key, err := record.ParseKey(private)
	require.NoError(t, err)
	assert.Equal(t, key.Public()+"\n", out.String())
	assert.Contains(t, notes.String(), "fleetling-member-key")
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.ErrorIs(t, run(), os.ErrExist, "a key is never overwritten")
}
