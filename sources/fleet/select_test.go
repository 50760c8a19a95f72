package fleet

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/fleetling/fleetling/sources"
)

var update = flag.Bool("update", false, "rewrite want in testdata")

// TestSelect runs each identity*.yaml of a case against the case's tree. A file
// "listed" says that the cluster had an entry before.
func TestSelect(t *testing.T) {
	runCases(t, "testdata/select", func(ar *txtar.Archive) string {
		tree, listed := fstest.MapFS{}, false
		var identities []txtar.File
		for _, file := range ar.Files {
			switch {
			case strings.HasPrefix(file.Name, "identity"):
				identities = append(identities, file)
			case file.Name == "listed":
				listed = true
			case file.Name != "want":
				tree[file.Name] = &fstest.MapFile{Data: file.Data}
			}
		}
		var out strings.Builder
		for _, identity := range identities {
			if len(identities) > 1 {
				fmt.Fprintf(&out, "# %s\n", identity.Name)
			}
			out.WriteString(selectOne(tree, identity, listed))
		}
		return out.String()
	})
}

func selectOne(tree fstest.MapFS, identity txtar.File, listed bool) string {
	id, err := ParseIdentity(identity.Name, identity.Data)
	if err != nil {
		return printError(err)
	}
	f, err := Read(tree)
	if err != nil {
		return printError(err)
	}
	s, err := f.Select(tree, id, listed)
	if err != nil {
		return printError(err)
	}
	return printSelection(s)
}

func runCases(t *testing.T, folder string, got func(*txtar.Archive) string) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files, "no cases")
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			require.NoError(t, err)
			want := &ar.Files[len(ar.Files)-1]
			require.Equal(t, "want", want.Name, "want stands last")
			text := got(ar)
			if *update {
				want.Data = []byte(text)
				require.NoError(t, os.WriteFile(file, txtar.Format(ar), 0o600))
			}
			if diff := cmp.Diff(string(want.Data), text); diff != "" {
				t.Errorf("%s(-want +got):\n%s", ar.Comment, diff)
			}
		})
	}
}

func printSelection(s Selection) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("cluster %s of %s, listed %t", s.Cluster, s.ClusterSet, s.Listed)
	for _, label := range s.Labels {
		line("label %s=%s (%s)", label.Key, label.Value, label.Origin)
	}
	for _, sentence := range s.Differs {
		line("differs: %s", sentence)
	}
	for _, a := range s.AddOns {
		line("add-on %s (%s:%d): %s", a.Name, a.File, a.Line, a.Path)
		for _, component := range a.Components {
			line("  component %s", component)
		}
		for _, component := range a.Absent {
			line("  absent %s", component)
		}
		for _, dependency := range a.DependsOn {
			line("  depends on %s", dependency)
		}
		for _, name := range slices.Sorted(maps.Keys(a.Substitute)) {
			line("  substitute %s=%q", name, a.Substitute[name])
		}
		if a.Timeout != defaultTimeout {
			line("  timeout %s", a.Timeout)
		}
	}
	line("%s", s.Digest)
	return out.String()
}

// printError prints one line per problem: its reason and its text.
func printError(err error) string {
	var out strings.Builder
	for _, problem := range flatten(err) {
		if e, ok := problem.(*sources.Error); ok { //nolint:errorlint // each of the joined, not the first
			fmt.Fprintf(&out, "%s: ", e.Reason)
		}
		fmt.Fprintln(&out, problem)
	}
	return out.String()
}

func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // the shape of errors.Join
		return joined.Unwrap()
	}
	return []error{err}
}
