package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fleetling/fleetling/agent/capi"
)

func capiLintCommand(world World) *cobra.Command {
	return &cobra.Command{
		Use:   "lint FILE...",
		Short: "Find what would go wrong when a cluster is born from these ClusterResourceSets",
		Long: "Find what would go wrong when a cluster is born from these ClusterResourceSets.\n" +
			"Give all files of a bundle at once: a set is followed to its ConfigMaps and Secrets.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			objects, err := readObjects(files)
			if err != nil {
				return err
			}
			sets := capi.Sets(objects)
			if sets == 0 {
				return errors.New("these files hold no ClusterResourceSet: there is nothing to lint")
			}
			findings := capi.Lint(objects)
			for _, finding := range findings {
				fmt.Fprintln(world.Out, finding)
			}
			if len(findings) > 0 {
				return errNotGood
			}
			fmt.Fprintf(world.Out, "good: %d ClusterResourceSets\n", sets)
			return nil
		},
	}
}

func readObjects(files []string) ([]capi.Object, error) {
	var all []capi.Object
	for _, file := range files {
		data, err := readBounded(file, capi.MaxFileBytes)
		if err != nil {
			return nil, err
		}
		objects, err := capi.Read(file, data)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}
