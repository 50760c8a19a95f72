package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/fleetling/fleetling/e2e/harness"
)

// Fleetling runs a command of the binary that ships, with the agent's own
// kubeconfig, and gives what it printed and its exit code.
func (m *Member) Fleetling(ctx context.Context, args ...string) (output string, code int, _ error) {
	binary, err := harness.Binary(ctx)
	if err != nil {
		return "", 0, err
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+m.path("kubeconfig"))
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return out.String() + problems.String(), exit.ExitCode(), nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("fleetling %v: %w", args, err)
	}
	return out.String(), 0, nil
}
