package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/fleetling/fleetling/discovery/record"
)

func keygenCommand(world World) *cobra.Command {
	return &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make a member key: the private one into FILE, the line for the cluster entry to standard output",
		Long: `Makes an ed25519 key with which a cluster signs its records.

Nobody has to: the agent makes its own where its Secret is missing, and shows the
line in Member's status.memberKey. Make one beforehand to have it in the cluster
entry from the first commit on.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			private, public, err := record.NewKey()
			if err != nil {
				return err
			}
			file, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			if _, err := file.Write(private); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if err := file.Close(); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			fmt.Fprintln(world.Out, public)
			fmt.Fprintf(world.Err, `The line belongs into annotation fleetling.dev/member-keys of the cluster's entry, the key into the cluster:
  kubectl -n fleetling-system create secret generic fleetling-member-key --from-file=identity=%s
`, args[0])
			return nil
		},
	}
}
