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

// ConfigFile is the agent's configuration.
func (m *Member) ConfigFile() string { return m.path("config.yaml") }

// Fleetling runs a command of the binary that ships where the agent is, with the
// agent's own kubeconfig, and gives what it printed and its exit code.
func (m *Member) Fleetling(ctx context.Context, args ...string) (output string, code int, _ error) {
	binary, err := harness.Binary(ctx)
	if err != nil {
		return "", 0, err
	}
	command := append([]string{binary}, args...)
	if m.options.Namespace != "" {
		command = append([]string{"ip", "netns", "exec", m.options.Namespace}, command...)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
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
