package world

import (
	"context"
	"os/exec"

	"github.com/fleetling/fleetling/sources/gittest"
)

// NewRegistry makes an empty registry repository, and serves it over http on
// loopback to everybody.
func NewRegistry(ctx context.Context, t gittest.T) *gittest.HTTPServer {
	t.Helper()
	bare := t.TempDir()
	if out, err := exec.CommandContext(ctx, "git", "init", "-q", "--bare", bare).CombinedOutput(); err != nil {
		t.Fatalf("registry: %v: %s", err, out)
	}
	return gittest.ServeHTTP(t, bare, gittest.HTTPOptions{Push: true})
}
