package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fleetling/fleetling/agent"
	"github.com/fleetling/fleetling/agent/probe"
)

func probeCommand(world World) *cobra.Command {
	var dataDir string
	var ready bool
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Ask the agent of this Pod whether it lives, or is ready: for exec probes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ask := probe.Live
			if ready {
				ask = probe.Ready
			}
			if err := ask(cmd.Context(), dataDir); err != nil {
				fmt.Fprintln(world.Err, err)
				return errNotGood
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", agent.DefaultDataDir, "the agent's data folder")
	cmd.Flags().BoolVar(&ready, "ready", false, "whether it is ready, not only alive")
	return cmd
}
