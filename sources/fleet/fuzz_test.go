package fleet

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// seeds gives the files of all cases whose name begins with prefix.
func seeds(f *testing.F, prefix string) [][]byte {
	f.Helper()
	archives, err := filepath.Glob("testdata/*/*.txtar")
	require.NoError(f, err)
	var all [][]byte
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		require.NoError(f, err)
		for _, file := range archive.Files {
			if strings.HasPrefix(file.Name, prefix) {
				all = append(all, file.Data)
			}
		}
	}
	require.NotEmpty(f, all)
	return all
}

func FuzzRead(f *testing.F) {
	entries := seeds(f, "clusters/")
	for at, data := range seeds(f, fleetFile) {
		f.Add(data, entries[at%len(entries)])
	}
	for _, data := range entries {
		f.Add([]byte(head+"clusters: {files: ['clusters/*']}\nlabels: {region: {}, env: {}}\naddons:\n- {name: base, path: 'addons/{{labels.region}}'}"), data)
	}
	f.Fuzz(func(t *testing.T, fleetYAML, entry []byte) {
		tree := fstest.MapFS{
			fleetFile: {Data: fleetYAML}, "clusters/a.yaml": {Data: entry},
			"addons/base/x.yaml": {}, "addons/eu/x.yaml": {}, "policies/baseline/x.yaml": {},
		}
		fleet, err := Read(tree)
		if err != nil {
			requireProblems(t, err)
			assert.Empty(t, fleet.AddOns)
			return
		}
		require.NotEmpty(t, fleet.AddOns)
		names := []string{"unlisted"}
		for _, cluster := range fleet.Clusters {
			names = append(names, cluster.Name)
		}
		for _, name := range names {
			s, err := fleet.Select(tree, Identity{Name: name, ClusterSet: fleet.ClusterSet}, false)
			if err != nil {
				requireProblems(t, err)
				assert.Equal(t, Selection{}, s)
				continue
			}
			requireSound(t, tree, s)
		}
	})
}

func FuzzParseIdentity(f *testing.F) {
	for _, data := range seeds(f, "identity") {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		id, err := ParseIdentity("identity.yaml", data)
		if err != nil {
			requireProblems(t, err)
			assert.Equal(t, Identity{}, id)
			return
		}
		assert.True(t, isDNSLabel(id.Name) && len(id.Name) <= maxNameLength, "%q", id.Name)
		assert.True(t, isDNSLabel(id.ClusterSet), "%q", id.ClusterSet)
		assert.LessOrEqual(t, len(id.Labels), maxLabels)
	})
}

// requireProblems holds for every error: each has a reason, and they are few.
func requireProblems(t *testing.T, err error) {
	t.Helper()
	all := flatten(err)
	require.LessOrEqual(t, len(all), maxProblems+1)
	for at, reason := range reasons(err) {
		if at < maxProblems {
			require.NotEmpty(t, reason, "%v", all[at])
		}
	}
}

// requireSound holds for every selection: its folders are there, below the root.
func requireSound(t *testing.T, tree fs.FS, s Selection) {
	t.Helper()
	require.Equal(t, digest(s), s.Digest)
	for _, addOn := range s.AddOns {
		for _, folder := range append(addOn.Components, addOn.Path) {
			info, err := fs.Stat(tree, folder)
			require.NoError(t, err)
			require.True(t, info.IsDir() && folder != ".", folder)
		}
		require.Positive(t, addOn.Timeout)
		for _, value := range addOn.Substitute {
			require.NotContains(t, value, "{{")
		}
	}
}
