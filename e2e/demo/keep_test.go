package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources/gittest"
)

func TestPrintedCommandCommitsSigned(t *testing.T) {
	repo, key := gittest.NewRepo(t), gittest.NewSSHKey(t, "founder", "ed25519")
	repo.Write("old.yaml", "a: 1\n")
	repo.Commit("first", key)
	repo.Write("old.yaml", "a: 2\n")
	repo.Write("new.yaml", "b: 1\n")

	cmd := exec.CommandContext(t.Context(), "sh", "-ec", signedCommit(repo.Dir, key.Private, "by hand"))
	// As on a machine where git has never been set up.
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))

	assert.Equal(t, "by hand", repo.Git("log", "-1", "--format=%s"))
	assert.Empty(t, repo.Git("status", "--porcelain"), "new files too")
	allowed := filepath.Join(t.TempDir(), "allowed")
	repo.Git("config", "gpg.ssh.allowedSignersFile", allowed)
	require.NoError(t, os.WriteFile(allowed, []byte("founder "+key.Public()), 0o644))
	repo.Git("verify-commit", "HEAD") // fails the test where it is not good
}
