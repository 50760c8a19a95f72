package harness

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/e2e/build"
)

func TestHostTakesItsProgramsFromTheAssets(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", "/nonexistent/assets")
	_, err := NewHost(t.Context())
	require.ErrorContains(t, err, "/nonexistent/assets")
}

func TestHostStarts(t *testing.T) {
	host, err := NewHost(t.Context())
	require.NotErrorIs(t, err, build.ErrNotBuilt)
	require.NoError(t, err)
	host.Stop()
}

func TestPlacesAreBounded(t *testing.T) {
	_, err := Places(t.Context(), maxClusters+1)
	require.ErrorContains(t, err, "4 asked for, there are 3")

	release, err := Places(t.Context(), 1)
	require.NoError(t, err)
	release()
}

func TestFoldersOutsideTheRepositoryAreAnError(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := NewHost(t.Context())
	require.ErrorContains(t, err, "not inside fleetling's repository")
	_, err = Places(t.Context(), 1)
	require.ErrorContains(t, err, "not inside fleetling's repository")
	_, err = CoreDNS()
	require.ErrorContains(t, err, "not inside fleetling's repository")
	_, err = Binary(t.Context())
	require.ErrorContains(t, err, "not inside fleetling's repository")
}
