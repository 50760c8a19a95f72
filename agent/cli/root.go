package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpproxy"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// World is what commands know of where they run: only main reads it.
type World struct {
	Out, Err io.Writer
	Proxy    httpproxy.Config
	Hostname string
	// APIServer and NodeIP are hints where the API server is; see agent.Options.
	APIServer, NodeIP string
}

// Exit codes.
const (
	exitGood    = 0
	exitNotGood = 1
	exitUnknown = 2
)

// errNotGood is an answer, not a fault: what was asked for is not as it should
// be, and the output has said so.
var errNotGood = errors.New("not good")

// Run runs one command and gives its exit code.
func Run(ctx context.Context, args []string, world World) int {
	root := &cobra.Command{
		Use:           "fleetling",
		Short:         "The per-cluster fleet agent: a signed Git commit becomes the state of this cluster",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetArgs(args)
	root.SetOut(world.Out)
	root.SetErr(world.Err)
	root.AddCommand(agentCommand(world), statusCommand(world), fleetCommand(world), keygenCommand(world), versionCommand(world))
	root.AddCommand(capiCommand(world), probeCommand(world), pauseCommand(world))
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitGood
	case errors.Is(err, errNotGood):
		return exitNotGood
	}
	fmt.Fprintln(world.Err, "fleetling:", err)
	return exitUnknown
}

// restConfig reaches the API server by a kubeconfig, or from inside the cluster,
// or by the kubeconfig that kubectl would take.
func restConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	return config, nil
}
