package fleet

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func sample() Selection {
	return Selection{
		Cluster: "a", ClusterSet: "prod", Listed: true,
		Labels: []Label{{Key: "x", Value: "y", Origin: OriginEntry}},
		AddOns: []AddOn{
			{Name: "one", Path: "p1", Timeout: time.Minute, Line: 3},
			{
				Name: "two", Path: "p2", Components: []string{"c1", "c2"}, DependsOn: []string{"one", "zero"},
				Substitute: map[string]string{"A": "1", "B": "2"}, Timeout: time.Minute, Line: 4,
			},
		},
	}
}

func TestDigestChangesWithEverythingThatIsApplied(t *testing.T) {
	seen := map[string]string{digest(sample()): "the sample"}
	for name, change := range map[string]func(*Selection){
		"cluster":            func(s *Selection) { s.Cluster = "b" },
		"cluster set":        func(s *Selection) { s.ClusterSet = "staging" },
		"order of add-ons":   func(s *Selection) { s.AddOns[0], s.AddOns[1] = s.AddOns[1], s.AddOns[0] },
		"fewer add-ons":      func(s *Selection) { s.AddOns = s.AddOns[:1] },
		"none":               func(s *Selection) { s.AddOns = nil },
		"name":               func(s *Selection) { s.AddOns[0].Name = "uno" },
		"path":               func(s *Selection) { s.AddOns[0].Path = "p3" },
		"components":         func(s *Selection) { s.AddOns[1].Components = []string{"c1"} },
		"order of them":      func(s *Selection) { s.AddOns[1].Components = []string{"c2", "c1"} },
		"one for two":        func(s *Selection) { s.AddOns[1].Components = []string{"c1,c2"} },
		"other add-on":       func(s *Selection) { s.AddOns[0].Components, s.AddOns[1].Components = s.AddOns[1].Components, nil },
		"dependencies":       func(s *Selection) { s.AddOns[1].DependsOn = []string{"one"} },
		"value":              func(s *Selection) { s.AddOns[1].Substitute = map[string]string{"A": "1", "B": "3"} },
		"values exchanged":   func(s *Selection) { s.AddOns[1].Substitute = map[string]string{"A": "2", "B": "1"} },
		"variable":           func(s *Selection) { s.AddOns[1].Substitute = map[string]string{"A": "1", "C": "2"} },
		"time-out":           func(s *Selection) { s.AddOns[1].Timeout = time.Hour },
		"component for path": func(s *Selection) { s.AddOns[0].Path, s.AddOns[0].DependsOn = "p1", []string{"p1"} },
	} {
		s := sample()
		change(&s)
		got := digest(s)
		assert.Empty(t, seen[got], "%s has the digest of", name)
		seen[got] = name
		assert.Regexp(t, "^sha256:[0-9a-f]{64}$", got)
	}
}

func TestDigestDoesNotChangeWithWhatIsOnlyTold(t *testing.T) {
	s := sample()
	s.Listed, s.Labels, s.Differs = false, nil, []string{"x"}
	s.AddOns[0].File, s.AddOns[0].Line, s.AddOns[0].Absent = "other", 99, []string{"c"}
	s.AddOns[0].Components, s.AddOns[0].Substitute = []string{}, map[string]string{}
	s.AddOns[1].DependsOn = []string{"zero", "one"}
	assert.Equal(t, digest(sample()), digest(s))
	assert.Equal(t, []string{"zero", "one"}, s.AddOns[1].DependsOn, "the argument is left alone")
}

// TestSelectionDoesNotDependOnOrder spreads the same entries over files in
// another order each time, and writes their labels in another order.
func TestSelectionDoesNotDependOnOrder(t *testing.T) {
	const clusters, rounds = 30, 40
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string]Selection{}
	for range rounds {
		tree, told := shuffledTree(random, clusters)
		f, err := Read(tree)
		require.NoError(t, err)
		for name, id := range told {
			got, err := f.Select(tree, id, true)
			require.NoError(t, err)
			if _, known := want[name]; !known {
				want[name] = got
			}
			// A sentence names the entry's file, which differs here.
			got.Differs = want[name].Differs
			if diff := cmp.Diff(want[name], got); diff != "" {
				t.Fatalf("%s (-first +now):\n%s", name, diff)
			}
		}
	}
	digests := map[string]bool{}
	for _, s := range want {
		digests[s.Digest] = true
	}
	assert.Len(t, digests, clusters, "and each cluster has its own")
}

func shuffledTree(random *rand.Rand, clusters int) (fstest.MapFS, map[string]Identity) {
	labels := []string{"region", "tier", "fleet", "zone"}
	declared := []string{"region: {required: true}", "tier: {}", "fleet: {}", "zone: {values: [z0, z1, z2]}"}
	random.Shuffle(len(declared), func(i, j int) { declared[i], declared[j] = declared[j], declared[i] })
	tree := treeOf(map[string]string{fleetFile: head +
		"clusters: {files: ['clusters/*']}\nlabels: {" + strings.Join(declared, ", ") + "}\naddons:\n" +
		"- {name: base, path: addons/base, substitute: {A: '{{cluster.name}}', B: '{{labels.region}}', C: x}}\n" +
		"- {name: zoned, path: addons/base, when: {matchLabels: {zone: z1, tier: v0}}, dependsOn: [base]}\n"})
	told := map[string]Identity{}
	for _, i := range random.Perm(clusters) {
		name := fmt.Sprintf("c%02d", i)
		told[name] = Identity{Name: name, ClusterSet: "prod", Labels: map[string]string{}}
		var written []string
		for _, at := range random.Perm(len(labels)) {
			value := fmt.Sprintf("%c%d", "vvvz"[at], i%(at+2)%3)
			told[name].Labels[labels[at]] = value
			written = append(written, labels[at]+": "+value)
		}
		file := fmt.Sprintf("clusters/%d", random.IntN(7))
		if tree[file] == nil {
			tree[file] = &fstest.MapFile{}
		}
		tree[file].Data = fmt.Appendf(tree[file].Data, "---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: %s, labels: {%s}}\n",
			name, strings.Join(written, ", "))
	}
	return tree, told
}
