package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/agent/clusterset"
	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/carriertest"
	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/gittest"
)

func carrierOf(t *testing.T, member, url, credentials string) discovery.Carrier {
	t.Helper()
	config := Config{Remote: git.Remote{Timeout: time.Minute, Limits: sources.DefaultLimits()}, DataDir: t.TempDir(), RegistryCredentials: credentials}
	c, err := carriers{config}.open(clusterset.Registry{Git: url}, member)
	require.NoError(t, err)
	return c
}

func TestARegistryRepositoryIsACarrier(t *testing.T) {
	t.Run("over http", func(t *testing.T) {
		carriertest.Run(t, func(t *testing.T) carriertest.Registry {
			t.Helper()
			repo := gittest.NewRepo(t)
			server := gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{Push: true})
			return carriertest.Registry{
				Open: func(member string) discovery.Carrier { return carrierOf(t, member, server.URL, "/nothing/there") },
				Writes: func() (n int) {
					for _, r := range server.Requests() {
						if r.Path == "/fleet.git/git-receive-pack" {
							n++
						}
					}
					return n
				},
			}
		})
	})
	t.Run("over ssh", func(t *testing.T) {
		key := gittest.NewSSHKey(t, "member", "ed25519")
		private, err := os.ReadFile(key.Private)
		require.NoError(t, err)
		carriertest.Run(t, func(t *testing.T) carriertest.Registry {
			t.Helper()
			repo := gittest.NewRepo(t)
			server := gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{Push: true, Authorized: key.Line})
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "identity"), private, 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "known_hosts"), []byte(server.KnownHosts()), 0o600))
			return carriertest.Registry{
				Open: func(member string) discovery.Carrier { return carrierOf(t, member, server.URL, dir) },
			}
		})
	})
}
