package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetling/fleetling/agent"
	"github.com/fleetling/fleetling/agent/clusterset"
)

type fleetFlags struct {
	config, dataDir, output string
	watch                   bool
}

func fleetCommand(world World) *cobra.Command {
	var flags fleetFlags
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Show all clusters of the fleet, from any place that reads registry and fleet repository",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			viewer, err := agent.NewViewer(flags.config, flags.dataDir, world.Proxy)
			if err != nil {
				return err
			}
			defer viewer.Close()
			for {
				seen, err := viewer.Look(cmd.Context())
				if err != nil && (!flags.watch || cmd.Context().Err() != nil) {
					return err
				}
				if err != nil {
					fmt.Fprintln(world.Err, err)
				} else if err := showFleet(world.Out, seen, flags.output); err != nil {
					return err
				}
				switch {
				case !flags.watch && !seen.Good():
					return errNotGood
				case !flags.watch:
					return nil
				}
				if !wait(cmd.Context(), watchEvery) {
					return nil
				}
				fmt.Fprintln(world.Out)
			}
		},
	}
	cmd.Flags().StringVar(&flags.config, "config", "/etc/fleetling/config.yaml", "configuration file: source, trust and registry credentials count")
	cmd.Flags().StringVar(&flags.dataDir, "data-dir", "", "folder for the clones, kept for the next call (default: a temporary one)")
	cmd.Flags().StringVarP(&flags.output, "output", "o", "", "wide, json or yaml")
	cmd.Flags().BoolVarP(&flags.watch, "watch", "w", false, "look again every few seconds")
	return cmd
}

const watchEvery = 5 * time.Second

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func showFleet(out io.Writer, seen agent.FleetView, format string) error {
	if format == "" || format == "wide" {
		return fleetTable(out, seen, format == "wide")
	}
	return encode(out, format, seen, "wide, json or yaml")
}

func fleetTable(out io.Writer, seen agent.FleetView, wide bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "ClusterSet %s at %s, signed by %s\n\n", seen.ClusterSet, seen.Revision[:12], seen.Signer)
	header := "CLUSTER\tREADY\tREVISION\tBEHIND\tADD-ONS\tFAILING\tEXPORTS\tAGE"
	if wide {
		header += "\tKEY\tMESSAGE"
	}
	fmt.Fprintln(w, header)
	for _, c := range seen.Clusters {
		line := fleetLine(c)
		if wide {
			line = append(line, cmp.Or(c.Key, "-"), fleetMessage(c))
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}

func fleetLine(c agent.ClusterView) []string {
	if c.Status == nil {
		return []string{c.Cluster, "Unknown", "-", "-", "-", "-", "-", "-"}
	}
	ready := "False"
	switch {
	case c.Late:
		ready = "Unknown (late)"
	case c.Status.Ready:
		ready = "True"
	}
	behind := "?"
	if c.Behind != nil {
		behind = fmt.Sprint(*c.Behind)
	}
	return []string{
		c.Cluster, ready, shortRevision(c.Status.Revision), behind, fmt.Sprint(c.Status.AddOns),
		cmp.Or(strings.Join(c.Status.Failing, ","), "-"), fmt.Sprint(len(c.Exports)), ageWords(c.Row),
	}
}

func fleetMessage(c agent.ClusterView) string {
	if c.Status == nil || c.Problem != "" {
		return c.Problem
	}
	return c.Status.Reason + ": " + c.Status.Message
}

func shortRevision(revision string) string { return cmp.Or(revision[:min(12, len(revision))], "-") }

func ageWords(row clusterset.Row) string { return max(row.Age, 0).Round(time.Second).String() }
