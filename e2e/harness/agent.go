package harness

import (
	"fmt"
	"os"

	"github.com/fleetling/fleetling/e2e/process"
)

// AgentOptions says how `fleetling agent` is run.
type AgentOptions struct {
	// Binary is the program, see the function Binary.
	Binary string
	// Config, Kubeconfig and DataDir are the values of the flags of those names.
	Config, Kubeconfig, DataDir string
	// Args are more flags, such as --log-level=debug.
	Args []string
	// Env is the whole environment. The agent needs none.
	Env []string
	// Log is the file that all its runs print to.
	Log string
	// Namespace is the network namespace that it runs in; empty is this process'.
	Namespace string
}

// Agent is an agent's process, and the ones after it when it is restarted.
type Agent struct {
	options AgentOptions
	process *process.Process
}

// StartAgent starts an agent. Whoever starts it stops it.
func StartAgent(options AgentOptions) (*Agent, error) {
	a := &Agent{options: options}
	return a, a.start()
}

func (a *Agent) start() error {
	o := a.options
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	args := append([]string{"agent", "--config=" + o.Config, "--kubeconfig=" + o.Kubeconfig, "--data-dir=" + o.DataDir}, o.Args...)
	// Not nil: that would be this process' environment.
	env := append([]string{}, o.Env...)
	started, err := process.Start(process.Command{Path: o.Binary, Args: args, Env: env, Log: o.Log, Namespace: o.Namespace})
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	a.process = started
	return nil
}

// Kill9 ends the agent at once, as a crash does.
func (a *Agent) Kill9() { a.process.Kill() }

// Stop asks the agent to end and gives how it ended: nil for exit code 0.
func (a *Agent) Stop() error {
	if err := a.process.Stop(); err != nil {
		return a.process.Explain(fmt.Errorf("agent: %w", err))
	}
	return nil
}

// Restart starts the agent again, stopping it first where it runs. With an
// empty data folder it is a new Pod on a new node, else a restarted container.
func (a *Agent) Restart(emptyDataDir bool) error {
	if a.process.Alive() {
		if err := a.Stop(); err != nil {
			return err
		}
	}
	if emptyDataDir {
		if err := os.RemoveAll(a.options.DataDir); err != nil {
			return fmt.Errorf("agent: %w", err)
		}
	}
	return a.start()
}

// Ended is closed when the agent's process has ended; after a Restart it is
// another channel.
func (a *Agent) Ended() <-chan struct{} { return a.process.Done() }

// Check is an error with the last lines of the log when the agent has ended: for
// waits that would otherwise run to their limit.
func (a *Agent) Check() error {
	if a.process.Alive() {
		return nil
	}
	return a.process.Explain(fmt.Errorf("agent: ended: %w", a.process.Wait()))
}

// Memory is what the agent's process takes.
func (a *Agent) Memory() (process.Memory, error) { return a.process.Memory() }

// Logs is all that the agent has printed, over all its runs.
func (a *Agent) Logs() (string, error) {
	content, err := os.ReadFile(a.options.Log)
	if err != nil {
		return "", fmt.Errorf("agent: %w", err)
	}
	return string(content), nil
}
