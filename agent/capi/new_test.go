package capi

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources/fleet"
)

// TestNew reads the labels of the wish from file wish, one KEY=VALUE per word.
func TestNew(t *testing.T) {
	runCases(t, "new", func(t *testing.T, tree fs.FS) string {
		t.Helper()
		words, err := fs.ReadFile(tree, "wish")
		require.NoError(t, err)
		p, err := New(tree, wishOf("new", strings.Fields(string(words))...))
		if err != nil {
			return err.Error() + "\n"
		}
		out := fmt.Sprintf("# %s\n%s", p.File, p.Data)
		for _, key := range p.Undeclared {
			out += "# undeclared: " + key + "\n"
		}
		return out
	})
}

func wishOf(name string, labels ...string) Wish {
	wish := Wish{
		Name: name, Labels: map[string]string{}, Bits: 16,
		Pool: netip.MustParsePrefix("10.0.0.0/8"), Services: netip.MustParsePrefix("10.96.0.0/12"),
	}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		wish.Labels[key] = value
	}
	return wish
}

const fleetText = `apiVersion: config.fleetling.dev/v1alpha1
kind: Fleet
clusterSet: prod
clusters: {files: ["clusters/*.yaml"], unlisted: deny}
labels: {region: {required: true}}
addons:
- {name: base, path: base}
`

func TestEveryLabelValueIsReadBackAsItWasGiven(t *testing.T) {
	for _, value := range []string{"true", "123", "1e3", "y", "on", "0o7", "null", "1.10", "2026-01-01", "a.b_c-d"} {
		repository := fstest.MapFS{"fleetling.yaml": {Data: []byte(fleetText)}}
		p, err := New(repository, wishOf("a", "region="+value))
		require.NoError(t, err, value)
		repository[p.File] = &fstest.MapFile{Data: p.Data}
		f, err := fleet.Read(repository)
		require.NoError(t, err)
		assert.Equal(t, value, f.Clusters[0].Labels["region"])
		assert.Equal(t, []netip.Prefix{p.Pods}, f.Clusters[0].PodCIDRs)
		entries, err := Entries(repository, f.Clusters)
		require.NoError(t, err)
		assert.Equal(t, "a", entries[0].Labelled)
	}
}

func TestClustersMadeOneAfterAnotherShareNoRange(t *testing.T) {
	repository := fstest.MapFS{"fleetling.yaml": {Data: []byte(fleetText)}}
	for i := range 20 {
		wish := wishOf(fmt.Sprintf("c%d", i), "region=r")
		wish.Avoid = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/15")}
		p, err := New(repository, wish)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("10.%d.0.0/16", i+2), p.Pods.String())
		repository[p.File] = &fstest.MapFile{Data: p.Data}
	}
}

func TestNewOverwritesNothing(t *testing.T) {
	repository := fstest.MapFS{"fleetling.yaml": {Data: []byte(fleetText)}, "clusters/a.yaml": {Data: []byte("# mine\n")}}
	_, err := New(repository, wishOf("a", "region=r"))
	assert.ErrorIs(t, err, fs.ErrExist)
}

func TestNewRefusesWishesThatCanNotBe(t *testing.T) {
	repository := fstest.MapFS{"fleetling.yaml": {Data: []byte(fleetText)}}
	for name, c := range map[string]struct {
		wish Wish
		want string
	}{
		"a name that is a path":  {wishOf("../a", "region=r"), "no name of a cluster"},
		"no name":                {wishOf("", "region=r"), "no name of a cluster"},
		"a name too long":        {wishOf(strings.Repeat("a", 33), "region=r"), "at most 32 characters"},
		"another cluster's name": {wishOf("a", "region=r", "fleetling.dev/cluster=b"), "must be the name"},
		"no service range":       {Wish{Name: "a"}, "no service range"},
		"no pool":                {Wish{Name: "a", Labels: map[string]string{"region": "r"}, Services: netip.MustParsePrefix("10.96.0.0/12")}, "pool"},
		"a label value":          {wishOf("a", "region=a b"), "not a label value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(repository, c.wish)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// brokenFolder has a folder that can't be listed.
type brokenFolder struct{ fstest.MapFS }

func (b brokenFolder) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == "clusters" {
		return nil, errors.New("input/output error")
	}
	return b.MapFS.ReadDir(name)
}

func TestAFolderThatCanNotBeReadIsNotAnEmptyOne(t *testing.T) {
	repository := brokenFolder{fstest.MapFS{"fleetling.yaml": {Data: []byte(fleetText)}}}
	_, err := New(repository, wishOf("a", "region=r"))
	assert.ErrorContains(t, err, "input/output error")
}
