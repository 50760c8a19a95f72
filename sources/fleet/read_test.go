package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"
)

// TestRead prints what other packages take from the fleet: entries and
// acknowledgements, and the problem that an entry keeps to itself.
func TestRead(t *testing.T) {
	runCases(t, "testdata/read", func(ar *txtar.Archive) string {
		tree := fstest.MapFS{}
		for _, file := range ar.Files {
			if file.Name != "want" {
				tree[file.Name] = &fstest.MapFile{Data: file.Data}
			}
		}
		f, err := Read(tree)
		if err != nil {
			return printError(err)
		}
		return printFleet(f)
	})
}

func printFleet(f Fleet) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("clusterSet %s, unlisted %s", f.ClusterSet, f.Unlisted)
	for _, a := range f.Acknowledge {
		line("acknowledge %s %s %q (line %d)", a.AddOn, a.Delete, a.Reason, a.Line)
	}
	printClusterSet(f, line)
	for _, c := range f.Clusters {
		line("cluster %s (%s:%d)", c.Name, c.File, c.Line)
		for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
			line("  label %s=%s", key, c.Labels[key])
		}
		for _, prefix := range c.PodCIDRs {
			line("  pods %s", prefix)
		}
		for _, prefix := range c.EndpointCIDRs {
			line("  endpoints %s", prefix)
		}
		for _, key := range c.MemberKeys {
			line("  key %s", key)
		}
		if c.Problem != nil {
			for problem := range strings.Lines(printError(c.Problem)) {
				line("  problem %s", strings.TrimSuffix(problem, "\n"))
			}
		}
	}
	return out.String()
}

func printClusterSet(f Fleet, line func(format string, args ...any)) {
	if f.Registry != nil {
		line("registry git %q nats %q", f.Registry.Git, f.Registry.NATS)
	}
	for _, namespace := range []string{"shop", "pay", "kube-system", "default"} {
		for _, c := range f.Clusters {
			if f.Registry != nil && f.MayExport(c.Name, namespace) {
				line("cluster %s may export %s", c.Name, namespace)
			}
		}
	}
	for _, problem := range f.Overlaps() {
		line("overlap %s", problem)
	}
}
