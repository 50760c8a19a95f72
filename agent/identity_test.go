package agent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/fleet"
)

func TestHoldIdentity(t *testing.T) {
	last := &fleet.Identity{Name: "one", ClusterSet: "prod", Labels: map[string]string{"region": "ap"}}
	moved := fleet.Identity{Name: "one", ClusterSet: "prod", Labels: map[string]string{"region": "eu"}}
	emptied := fleet.Identity{Name: "one", ClusterSet: "prod"}
	renamed := fleet.Identity{Name: "two", ClusterSet: "prod", Labels: map[string]string{"region": "ap"}}
	for name, c := range map[string]struct {
		found  fleet.Identity
		err    error
		last   *fleet.Identity
		want   *fleet.Identity
		reason sources.Reason
	}{
		"the first one counts":                                 {found: moved, want: &moved},
		"a first one without labels counts":                    {found: emptied, want: &emptied},
		"changed labels count":                                 {found: moved, last: last, want: &moved},
		"C5: labels that are all gone hold the last good one":  {found: emptied, last: last, want: last, reason: sources.IdentityDiffers},
		"another name holds the last good one":                 {found: renamed, last: last, want: last, reason: sources.IdentityDiffers},
		"one that can't be read holds the last good one":       {err: &sources.Error{Reason: sources.IdentityMissing}, last: last, want: last, reason: sources.IdentityMissing},
		"one that was never there is nothing, and says so":     {err: &sources.Error{Reason: sources.IdentityMissing}, reason: sources.IdentityMissing},
		"one without labels is no loss where there never were": {found: emptied, last: &emptied, want: &emptied},
	} {
		t.Run(name, func(t *testing.T) {
			got := holdIdentity(c.found, c.err, c.last)
			assert.Equal(t, c.want, got.identity)
			assert.Equal(t, c.reason, sources.ReasonOf(got.err))
		})
	}
}

func TestAnIdentityThatIsNotThereSaysWhatToDo(t *testing.T) {
	_, err := readIdentity(filepath.Join(t.TempDir(), "identity.yaml"))
	assert.Equal(t, sources.IdentityMissing, sources.ReasonOf(err))
	assert.ErrorContains(t, err, "create ConfigMap fleetling-identity in namespace fleetling-system")
}

func TestAnIdentityThatCannotBeReadIsAnError(t *testing.T) {
	dir := t.TempDir()
	_, err := readIdentity(dir)
	assert.Equal(t, sources.IdentityMissing, sources.ReasonOf(err), "a folder in its place")
	path := filepath.Join(dir, "identity.yaml")
	require.NoError(t, os.WriteFile(path, []byte("name: [\n"), 0o600))
	_, err = readIdentity(path)
	assert.NotEmpty(t, sources.ReasonOf(err), "broken YAML")
	assert.False(t, errors.Is(err, os.ErrNotExist))
}
