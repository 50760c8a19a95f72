package capi

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/fleetling/fleetling/sources/fleet"
)

var update = flag.Bool("update", false, "rewrite want in testdata")

// runCases compares what decide makes of the files before want, the last one.
func runCases(t *testing.T, folder string, decide func(t *testing.T, tree fs.FS) string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			require.NoError(t, err)
			last := len(ar.Files) - 1
			require.Equal(t, "want", ar.Files[last].Name)
			tree, err := txtar.FS(&txtar.Archive{Files: ar.Files[:last:last]})
			require.NoError(t, err)
			got := decide(t, tree)
			if *update {
				ar.Files[last].Data = []byte(got)
				require.NoError(t, os.WriteFile(file, txtar.Format(ar), 0o644))
			}
			if diff := cmp.Diff(string(ar.Files[last].Data), got); diff != "" {
				t.Errorf("%s(-want +got):\n%s", ar.Comment, diff)
			}
		})
	}
}

// chosen reads the repository as the command does; file names, when it is there,
// holds the names that are asked for.
func chosen(t *testing.T, tree fs.FS) ([]Entry, []string, string, error) {
	t.Helper()
	f, err := fleet.Read(tree)
	require.NoError(t, err)
	entries, err := Entries(tree, f.Clusters)
	if err != nil {
		return nil, nil, "", err
	}
	names, err := fs.ReadFile(tree, "names")
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	found, leftOut, err := Choose(entries, strings.Fields(string(names)))
	return found, leftOut, f.ClusterSet, err
}

// shipped are the manifests as they ship, with their component.
func shipped(t *testing.T) []Object {
	t.Helper()
	objects, err := Load(os.DirFS("../../manifests"))
	require.NoError(t, err)
	return objects
}

func install() Install {
	return Install{
		Image: "registry.example.com/fleetling:1", URL: "https://git.example.org/fleet.git", Branch: "refs/heads/main",
		Signers: map[string]string{"alice.pub": "ssh-ed25519 AAAA alice\n"},
	}
}

func installed(t *testing.T) []Object {
	t.Helper()
	made, err := install().Into(shipped(t))
	require.NoError(t, err)
	return made
}
