package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
)

const minimal = `apiVersion: config.fleetling.dev/v1alpha1
kind: AgentConfiguration
source: {url: "https://git.example.com/fleet.git", branch: refs/heads/main}
`

func readText(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return ReadConfig(path)
}

func TestAConfigurationNeedsLittle(t *testing.T) {
	got, err := readText(t, minimal)
	require.NoError(t, err)
	assert.Equal(t, 30*time.Second, got.Interval)
	assert.Equal(t, 2*time.Minute, got.Remote.Timeout)
	assert.Equal(t, 24*time.Hour, got.StaleAfter)
	assert.Equal(t, sources.DefaultLimits(), got.Remote.Limits)
	assert.Equal(t, "/etc/fleetling/signers", got.Trust.Signers)
	assert.Equal(t, "/etc/fleetling/identity/identity.yaml", got.Identity)
	assert.Equal(t, "/var/lib/fleetling", got.DataDir)
}

func TestAConfigurationIsReadWhole(t *testing.T) {
	got, err := readText(t, minimal+`trust: {commit: "0123456789012345678901234567890123456789", revoked: ["0123456789012345678901234567890123456789"], signers: /s}
identity: /i.yaml
dataDir: /d
listen: {metrics: "0", health: ":1"}
limits: {packBytes: 1Mi, objects: 7}
`)
	require.NoError(t, err)
	assert.Equal(t, int64(1<<20), got.Remote.Limits.PackBytes)
	assert.Equal(t, 7, got.Remote.Limits.Objects)
	assert.Equal(t, sources.DefaultLimits().Depth, got.Remote.Limits.Depth, "what is left out has its default")
	assert.Equal(t, Trust{Signers: "/s", Commit: "0123456789012345678901234567890123456789", Revoked: []string{"0123456789012345678901234567890123456789"}}, got.Trust)
	assert.Equal(t, "0", got.Metrics)
	assert.Equal(t, ":1", got.Health)
}

func TestAConfigurationThatIsNotRightIsRefusedByName(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an unknown key":           {minimal + "surce: {}\n", "surce"},
		"a key twice":              {minimal + "identity: /a\nidentity: /b\n", "identity"},
		"another kind":             {"apiVersion: v1\nkind: ConfigMap\n", "write config.fleetling.dev/v1alpha1"},
		"no URL":                   {"apiVersion: config.fleetling.dev/v1alpha1\nkind: AgentConfiguration\n", "URL"},
		"a short branch name":      {"apiVersion: config.fleetling.dev/v1alpha1\nkind: AgentConfiguration\nsource: {url: \"https://a/b\", branch: main}\n", "write refs/heads/NAME"},
		"a short commit":           {minimal + "trust: {commit: abc}\n", "trust.commit"},
		"a limit of nothing":       {minimal + "limits: {files: 0}\n", "limits"},
		"no time between looks":    {strings.Replace(minimal, "branch:", "interval: 1ms, branch:", 1), "source.interval"},
		"a revoked key of nothing": {minimal + "trust: {revoked: [alice]}\n", "trust.revoked"},
		"a relative path":          {minimal + "dataDir: data\n", "dataDir"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readText(t, c.text)
			assert.ErrorContains(t, err, c.want)
		})
	}
	_, err := ReadConfig(filepath.Join(t.TempDir(), "none.yaml"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = readText(t, string(make([]byte, maxConfigBytes+1)))
	assert.ErrorContains(t, err, "larger")
}
