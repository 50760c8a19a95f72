package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
)

const head = "apiVersion: config.fleetling.dev/v1alpha1\nkind: Fleet\nclusterSet: prod\n"

// rows gives n lines of format, which takes a number.
func rows(n int, format string) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, format+"\n", i)
	}
	return out.String()
}

func entriesText(n int) string {
	return rows(n, "---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: c%d}")
}

func TestEveryBoundOfReadIsLimitExceededJustAboveIt(t *testing.T) {
	one := "addons: [{name: base, path: addons/base}]\n"
	files := "clusters: {files: ['clusters/*']}\n"
	cases := map[string]struct {
		at, above map[string]string
	}{
		"fleetling.yaml has 1 MiB": {
			at:    map[string]string{fleetFile: head + one + "#" + strings.Repeat("x", maxFleetBytes-len(head)-len(one)-1)},
			above: map[string]string{fleetFile: head + one + "#" + strings.Repeat("x", maxFleetBytes-len(head)-len(one))},
		},
		"a file of entries has 1 MiB": {
			at:    map[string]string{fleetFile: head + files + one, "clusters/a": "#" + strings.Repeat("x", maxEntryBytes-1)},
			above: map[string]string{fleetFile: head + files + one, "clusters/a": "#" + strings.Repeat("x", maxEntryBytes)},
		},
		"there are 500 add-ons": {
			at:    map[string]string{fleetFile: head + "addons:\n" + rows(maxAddOns, "- {name: a%d, path: addons/base}")},
			above: map[string]string{fleetFile: head + "addons:\n" + rows(maxAddOns+1, "- {name: a%d, path: addons/base}")},
		},
		"64 labels are declared": {
			at:    map[string]string{fleetFile: head + one + "labels:\n" + rows(maxLabels, "  l%d: {}")},
			above: map[string]string{fleetFile: head + one + "labels:\n" + rows(maxLabels+1, "  l%d: {}")},
		},
		"there are 5000 entries": {
			at:    map[string]string{fleetFile: head + files + one, "clusters/a": entriesText(maxEntries)},
			above: map[string]string{fleetFile: head + files + one, "clusters/a": entriesText(maxEntries + 1)},
		},
		"a list has 1000 items": {
			at:    map[string]string{fleetFile: head + one + "labels:\n  l:\n    values:\n" + rows(maxItems, "    - v%d")},
			above: map[string]string{fleetFile: head + one + "labels:\n  l:\n    values:\n" + rows(maxItems+1, "    - v%d")},
		},
		"64 globs": {
			at:    map[string]string{fleetFile: head + one + "clusters:\n  files:\n" + rows(maxGlobs, "  - clusters/?%[1]d*"), "clusters/a": ""},
			above: map[string]string{fleetFile: head + one + "clusters:\n  files:\n" + rows(maxGlobs+1, "  - clusters/?%[1]d*"), "clusters/a": ""},
		},
		"an add-on has 64 components": {
			at:    map[string]string{fleetFile: head + "addons:\n- name: base\n  path: addons/base\n  components:\n" + rows(maxComponents, "  - {path: addons/c%d}")},
			above: map[string]string{fleetFile: head + "addons:\n- name: base\n  path: addons/base\n  components:\n" + rows(maxComponents+1, "  - {path: addons/c%d}")},
		},
		"an add-on has 64 variables": {
			at:    map[string]string{fleetFile: head + "addons:\n- name: base\n  path: addons/base\n  substitute:\n" + rows(maxSubstitutes, "    V%d: x")},
			above: map[string]string{fleetFile: head + "addons:\n- name: base\n  path: addons/base\n  substitute:\n" + rows(maxSubstitutes+1, "    V%d: x")},
		},
		"a selector has 64 requirements": {
			at:    map[string]string{fleetFile: head + "labels: {x: {}}\naddons:\n- name: base\n  path: addons/base\n  when:\n    matchExpressions:\n" + rows(maxRequirements, "    - {key: x, operator: In, values: [v%d]}")},
			above: map[string]string{fleetFile: head + "labels: {x: {}}\naddons:\n- name: base\n  path: addons/base\n  when:\n    matchLabels: {x: v}\n    matchExpressions:\n" + rows(maxRequirements, "    - {key: x, operator: In, values: [v%d]}")},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Read(treeOf(c.at))
			assert.NotContains(t, reasons(err), sources.LimitExceeded, "%v", err)
			_, err = Read(treeOf(c.above))
			assert.Equal(t, sources.LimitExceeded, sources.ReasonOf(err), "%v", err)
		})
	}
}

func TestAllEntryFilesTogetherAreBounded(t *testing.T) {
	tree := treeOf(map[string]string{fleetFile: head + "clusters: {files: ['clusters/*']}\naddons: [{name: base, path: addons/base}]"})
	full := &fstest.MapFile{Data: []byte("#" + strings.Repeat("x", maxEntryBytes-1))}
	for i := range maxEntriesBytes / maxEntryBytes {
		tree[fmt.Sprintf("clusters/%03d", i)] = full
	}
	tree["clusters/one-more"] = &fstest.MapFile{Data: []byte("#")}
	_, err := Read(tree)
	require.Equal(t, sources.LimitExceeded, sources.ReasonOf(err), "%v", err)
	assert.ErrorContains(t, err, "clusters/one-more: ", "those before it were read")
}

func TestAnEntryWithTooMuchInItIsItsOwnProblem(t *testing.T) {
	tree := treeOf(map[string]string{
		fleetFile: head + "clusters: {files: ['clusters/*']}\naddons: [{name: base, path: addons/base}]",
		"clusters/a": "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: a}\n" +
			"spec:\n  clusterNetwork:\n    pods:\n      cidrBlocks:\n" + rows(maxCIDRs+1, "      - 10.%d.0.0/16"),
		"clusters/b": "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata:\n  name: b\n  labels:\n" + rows(maxItems+1, "    l%d: x"),
	})
	f, err := Read(tree)
	require.NoError(t, err)
	require.Len(t, f.Clusters, 2)
	for _, cluster := range f.Clusters {
		assert.Equal(t, sources.LimitExceeded, sources.ReasonOf(cluster.Problem), cluster.Name)
	}
	assert.Empty(t, f.Clusters[0].PodCIDRs)
}

func TestAnIdentityIsBounded(t *testing.T) {
	identity := "apiVersion: config.fleetling.dev/v1alpha1\nkind: Identity\nname: a\nclusterSet: prod\n"
	for name, c := range map[string]struct{ at, above string }{
		"64 KiB":    {identity + "#" + strings.Repeat("x", maxIdentityBytes-len(identity)-1), identity + "#" + strings.Repeat("x", maxIdentityBytes-len(identity))},
		"64 labels": {identity + "labels:\n" + rows(maxLabels, "  l%d: x"), identity + "labels:\n" + rows(maxLabels+1, "  l%d: x")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseIdentity("identity.yaml", []byte(c.at))
			require.NoError(t, err)
			_, err = ParseIdentity("identity.yaml", []byte(c.above))
			assert.Equal(t, sources.LimitExceeded, sources.ReasonOf(err), "%v", err)
		})
	}
}

func TestAnAliasBombIsReadInNoTimeAndRefused(t *testing.T) {
	bomb := "labels:\n  a: &a [x, x, x, x, x, x, x, x, x]\n"
	for letter := 'b'; letter <= 'z'; letter++ {
		last := string(letter - 1)
		bomb += fmt.Sprintf("  %c: &%[1]c [%s]\n", letter, strings.Repeat("*"+last+", ", 9))
	}
	_, err := Read(treeOf(map[string]string{fleetFile: head + bomb + "addons: [{name: base, path: addons/base}]"}))
	assert.Equal(t, sources.InvalidFleetFile, sources.ReasonOf(err), "%v", err)

	entry := "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: a}\n" + strings.Replace(bomb, "labels:", "spec:", 1)
	f, err := Read(treeOf(map[string]string{
		fleetFile:    head + "clusters: {files: ['clusters/*']}\naddons: [{name: base, path: addons/base}]",
		"clusters/a": entry,
	}))
	require.NoError(t, err)
	assert.NoError(t, f.Clusters[0].Problem, "what is not ours is not followed")
}

func TestTwoWaysToEachAddOnAreNotWalkedTwice(t *testing.T) {
	const layers = 200 // 2^200 ways from the first to the last
	text := head + "addons:\n" + rows(1, "- {name: a%d, path: addons/base}\n- {name: b%[1]d, path: addons/base}")
	for i := 1; i < layers; i++ {
		for _, letter := range "ab" {
			text += fmt.Sprintf("- {name: %c%d, path: addons/base, dependsOn: [a%d, b%[3]d]}\n", letter, i, i-1)
		}
	}
	reversed := strings.SplitAfter(strings.TrimPrefix(text, head+"addons:\n"), "\n")
	slices.Reverse(reversed)
	f, err := Read(treeOf(map[string]string{fleetFile: head + "addons:\n" + strings.Join(reversed, "")}))
	require.NoError(t, err)
	assert.Len(t, f.AddOns, 2*layers)
}

func TestThousandsOfProblemsAreCutToTwenty(t *testing.T) {
	_, err := Read(treeOf(map[string]string{fleetFile: head + "addons:\n" + rows(maxAddOns, "- {name: A%[1]d, path: ../x, zz: 1, yy: 2}")}))
	all := flatten(err)
	require.Len(t, all, maxProblems+1)
	assert.EqualError(t, all[maxProblems], fmt.Sprintf("and %d more", 4*maxAddOns-maxProblems))
}

func TestWhatIsKeptOfTheProblemsIsBounded(t *testing.T) {
	found := &problems{}
	for range 2 * maxKept {
		found.add(place{}, fault(sources.InvalidFleetFile, "x"))
	}
	assert.Len(t, found.kept, maxKept)
	assert.ErrorContains(t, found.err(), fmt.Sprintf("and %d more", 2*maxKept-maxProblems))
}

func treeOf(files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{"addons/base/x.yaml": {}}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}

func reasons(err error) []sources.Reason {
	var all []sources.Reason
	if err != nil {
		for _, problem := range flatten(err) {
			all = append(all, sources.ReasonOf(problem))
		}
	}
	return all
}
