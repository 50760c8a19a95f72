package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func capiCommand(world World) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "capi",
		Short: "Pack the agent for Cluster API: every new cluster is born with it",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(capiRenderCommand(world), capiLintCommand(world), capiNewCommand(world))
	return cmd
}

// readBounded reads a file of at most most bytes.
func readBounded(name string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: more than %d bytes", name, most)
	}
	return data, err
}
