package apply

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite want in testdata")

// TestNewPlan reads its cases from testdata/plan. The sections of a case:
//
//	wanted/NAME [partly]  objects of an add-on, as YAML or as lines "APIVERSION KIND [NAMESPACE/]NAME";
//	                      partly is Whole=false, and a comment "# file: F" names the file
//	claims/NAME           what a newer revision of that add-on wants
//	selection             "partly": not all add-ons are known
//	unborn                Service default/kubernetes is not there
//	inventory             lines "NAME KEY", with ? before a key that is only intended
//	live                  lines "KEY [foreign] [deleting] [finalizers=A,B] [prune=P] [uid=U] [fields=F] [version=N]"
//	applied               lines "KEY [old] [uid=U] [fields=F] [verify=now|later]": what was applied last, as wanted now or older
//	retries               lines "KEY new|old|delete now|later REASON: MESSAGE"
//	kinds                 lines "serve VERSION KIND namespaced|cluster", "hide VERSION KIND", "silent VERSION", "unsynced KIND"
//	want                  the plan
//
// "{1..15}" in a line stands for fifteen lines.
func TestNewPlan(t *testing.T) {
	files, err := filepath.Glob("testdata/plan/*.txtar")
	require.NoError(t, err)
	require.Greater(t, len(files), 60)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			require.NoError(t, err)
			require.NotEmpty(t, ar.Files, "no sections")
			want := &ar.Files[len(ar.Files)-1]
			require.Equal(t, "want", want.Name)
			wanted, seen := readPlanCase(t, ar.Files[:len(ar.Files)-1])
			got := printPlan(NewPlan(wanted, seen), seen.Inventory)
			if *update {
				want.Data = []byte(got)
				require.NoError(t, os.WriteFile(file, txtar.Format(ar), 0o644))
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Errorf("%s(-want +got):\n%s", ar.Comment, diff)
			}
		})
	}
}

// planCase collects the sections of a case.
type planCase struct {
	wanted  Wanted
	seen    Observed
	digests map[ID]string
}

var planNow = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func readPlanCase(t *testing.T, sections []txtar.File) (Wanted, Observed) {
	t.Helper()
	c := &planCase{
		wanted:  Wanted{Whole: true},
		digests: map[ID]string{},
		seen: Observed{
			Inventory: Inventory{}, Live: map[ID]*Live{}, Synced: map[schema.GroupKind]bool{},
			Applied: map[ID]Applied{}, Retries: map[ID]Retry{}, Now: planNow, Kinds: commonKinds(t),
		},
	}
	for gk := range c.seen.Kinds.chosen {
		c.seen.Synced[gk] = true
	}
	slices.SortStableFunc(sections, func(a, b txtar.File) int { return order(a.Name) - order(b.Name) })
	for _, section := range sections {
		name, rest, _ := strings.Cut(section.Name, "/")
		switch name {
		case "kinds":
			c.kinds(t, string(section.Data))
		case "wanted":
			addOn, flags, _ := strings.Cut(rest, " ")
			objects, failures := readObjects(t, addOn, string(section.Data))
			c.wanted.AddOns = append(c.wanted.AddOns, AddOn{Name: addOn, Objects: objects, Failures: failures, Whole: flags != "partly"})
			c.seen.Kinds = c.seen.Kinds.With(c.wanted)
		case "claims":
			i := slices.IndexFunc(c.wanted.AddOns, func(a AddOn) bool { return a.Name == rest })
			require.GreaterOrEqual(t, i, 0, "claims of %s before what it wants", rest)
			c.wanted.AddOns[i].Claims, _ = readObjects(t, rest, string(section.Data))
			c.seen.Kinds = c.seen.Kinds.With(c.wanted)
		case "unborn":
			c.seen.Unborn = true
		case "selection":
			require.Equal(t, "partly", strings.TrimSpace(string(section.Data)))
			c.wanted.Whole = false
		default:
			c.observe(t, section.Name, string(section.Data))
		}
	}
	return c.wanted, c.seen
}

// order reads kinds first, and what refers to wanted objects last.
func order(section string) int {
	switch name, _, _ := strings.Cut(section, "/"); name {
	case "kinds":
		return 0
	case "wanted":
		return 1
	}
	return 2
}

func commonKinds(tb testing.TB) Kinds {
	tb.Helper()
	return kindsOf(tb,
		"v1 Namespace cluster", "v1 ConfigMap namespaced", "v1 Secret namespaced", "v1 Service namespaced", "v1 ServiceAccount namespaced",
		"v1 PersistentVolume cluster", "v1 PersistentVolumeClaim namespaced", "apps/v1 Deployment namespaced",
		"rbac.authorization.k8s.io/v1 ClusterRole cluster", "rbac.authorization.k8s.io/v1 RoleBinding namespaced",
		"apiextensions.k8s.io/v1 CustomResourceDefinition cluster", "storage.k8s.io/v1 StorageClass cluster",
		"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy cluster", "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding cluster",
		"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration cluster",
		"cluster.x-k8s.io/v1beta2 Cluster namespaced", "infrastructure.cluster.x-k8s.io/v1beta2 DockerCluster namespaced",
	)
}

func (c *planCase) kinds(t *testing.T, text string) {
	t.Helper()
	k := c.seen.Kinds
	for _, words := range lines(t, text) {
		gvk := schema.FromAPIVersionAndKind(words[1], "")
		if len(words) > 2 {
			gvk.Kind = words[2]
		}
		switch words[0] {
		case "serve":
			more := kindsOf(t, strings.Join(words[1:], " "))
			maps.Copy(k.served, more.served)
			maps.Copy(k.chosen, more.chosen)
			c.seen.Synced[gvk.GroupKind()] = true
		case "hide":
			require.Contains(t, k.served, gvk)
			delete(k.served, gvk)
			delete(k.chosen, gvk.GroupKind())
			delete(c.seen.Synced, gvk.GroupKind())
		case "silent":
			k.silent[gvk.GroupVersion()] = true
		case "unsynced":
			gk := schema.ParseGroupKind(words[1])
			require.Contains(t, c.seen.Synced, gk)
			delete(c.seen.Synced, gk)
		default:
			require.Fail(t, "unknown line", words)
		}
	}
}

// observe reads the sections about the cluster.
func (c *planCase) observe(t *testing.T, section, text string) {
	t.Helper()
	for _, addOn := range c.wanted.AddOns {
		for _, o := range addOn.Objects {
			c.digests[c.seen.Kinds.Identify(o)] = o.Digest
		}
	}
	for _, words := range lines(t, text) {
		switch section {
		case "inventory":
			if c.seen.Inventory[words[0]] == nil {
				c.seen.Inventory[words[0]] = Set{}
			}
			key, intended := strings.CutPrefix(words[1], "?")
			c.seen.Inventory[words[0]][parseID(t, key)] = Holding(!intended)
		case "live":
			c.seen.Live[parseID(t, words[0])] = readLive(t, words[1:])
		case "applied":
			c.applied(t, parseID(t, words[0]), words[1:])
		case "retries":
			c.retry(t, parseID(t, words[0]), words[1:])
		default:
			require.Fail(t, "unknown section", section)
		}
	}
}

func readLive(t *testing.T, flags []string) *Live {
	t.Helper()
	live := &Live{UID: "u", Fields: "f", Version: 1}
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		switch name {
		case "foreign":
			live.Fields = ""
		case "deleting":
			live.Deleting = true
		case "finalizers":
			live.Finalizers = strings.Split(value, ",")
		case "prune":
			live.Prune = value
		case "uid":
			live.UID = types.UID(value)
		case "fields":
			live.Fields = value
		case "version":
			live.Version = parseVersion(value)
		default:
			require.Fail(t, "unknown flag", flag)
		}
	}
	return live
}

func (c *planCase) applied(t *testing.T, id ID, flags []string) {
	t.Helper()
	applied := Applied{Digest: c.digests[id], UID: "u", Fields: "f"}
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		switch name {
		case "old":
			applied.Digest = "old"
		case "verify":
			applied.Verify = map[string]time.Time{"now": planNow, "later": planNow.Add(time.Nanosecond)}[value]
		case "uid":
			applied.UID = types.UID(value)
		case "fields":
			applied.Fields = value
		default:
			require.Fail(t, "unknown flag", flag)
		}
	}
	require.NotEmpty(t, applied.Digest, "%s is not wanted", id)
	c.seen.Applied[id] = applied
}

func (c *planCase) retry(t *testing.T, id ID, words []string) {
	t.Helper()
	require.Greater(t, len(words), 3)
	digest, known := map[string]string{"new": c.digests[id], "old": "old", "delete": ""}[words[0]]
	next, timed := map[string]time.Time{"now": planNow, "later": planNow.Add(time.Nanosecond)}[words[1]]
	require.True(t, known && timed, words)
	reason := Reason(strings.TrimSuffix(words[2], ":"))
	c.seen.Retries[id] = Retry{Digest: digest, Next: next, Attempts: 1, Failure: Failure{ID: id, Reason: reason, Message: strings.Join(words[3:], " ")}}
}

// lines splits a text into words by line, and repeats a line with {1..N} in it.
func lines(t *testing.T, text string) [][]string {
	t.Helper()
	var all [][]string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		before, rest, repeated := strings.Cut(line, "{1..")
		if !repeated {
			if words := strings.Fields(line); len(words) > 0 {
				all = append(all, words)
			}
			continue
		}
		count, after, _ := strings.Cut(rest, "}")
		n, err := strconv.Atoi(count)
		require.NoError(t, err)
		for i := range n {
			all = append(all, strings.Fields(before+strconv.Itoa(i+1)+after))
		}
	}
	return all
}

func parseID(t *testing.T, key string) ID {
	t.Helper()
	id, err := ParseKey(key)
	require.NoError(t, err)
	return id
}

// readObjects takes objects over the edge, as a render hands them over.
func readObjects(t *testing.T, addOn, text string) ([]Object, []Failure) {
	t.Helper()
	var manifests []Manifest
	for doc := range strings.SplitSeq(text, "---\n") {
		file, named := strings.CutPrefix(doc, "# file: ")
		file, _, _ = strings.Cut(file, "\n")
		var all []*unstructured.Unstructured
		if strings.Contains(doc, "kind:") {
			all = append(all, readYAML(t, doc))
		} else {
			for _, words := range lines(t, doc) {
				all = append(all, objectOf(t, words))
			}
		}
		for _, u := range all {
			name := file
			if !named {
				name = addOn + "/" + u.GetName() + ".yaml"
			}
			manifests = append(manifests, Manifest{u, name})
		}
	}
	return Decode(addOn, manifests)
}

// readYAML reads an object as a render does: whole numbers are int64.
func readYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	u := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal(raw, &u.Object))
	return u
}

func objectOf(t *testing.T, words []string) *unstructured.Unstructured {
	t.Helper()
	require.Len(t, words, 3)
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(words[0])
	u.SetKind(words[1])
	namespace, name, namespaced := strings.Cut(words[2], "/")
	if !namespaced {
		namespace, name = "", words[2]
	}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// printPlan words a plan as a person would tell it.
func printPlan(plan Plan, before Inventory) string {
	var b strings.Builder
	for _, a := range plan.AddOns {
		state := fmt.Sprintf("%d objects", a.Objects)
		if !a.Selected {
			state = "not selected"
		}
		fmt.Fprintf(&b, "add-on %s: %s\n", a.Name, state)
		for _, id := range sortedIDs(a.Hold) {
			if _, noted := before[a.Name][id]; !noted {
				fmt.Fprintf(&b, "  %s %s\n", map[Holding]string{Intended: "intends", Held: "takes over"}[a.Hold[id]], id)
			}
		}
		for stage, steps := range a.Steps {
			for _, step := range steps {
				fmt.Fprintf(&b, "  %s: %s %s\n", stageNames[stage], step.ID, step.Why)
			}
		}
		for _, w := range a.Waiting {
			fmt.Fprintf(&b, "  waits: %s for %s\n", w.ID, w.What)
		}
		for _, f := range a.Failures {
			fmt.Fprintf(&b, "  fails: %s (%s)\n", f, f.Reason)
		}
		for _, id := range a.Moved {
			fmt.Fprintf(&b, "  moved: %s\n", id)
		}
		printRemoval(&b, a.Removal)
	}
	for _, id := range plan.Strays {
		fmt.Fprintf(&b, "stray: %s\n", id)
	}
	if plan.Unserved {
		b.WriteString("a kind is looked for\n")
	}
	return b.String()
}

var stageNames = [stages]string{"definitions", "parameters", "classes", "access", "workloads", "guards"}

func printRemoval(b *strings.Builder, r Removal) {
	for _, target := range r.Now {
		fmt.Fprintf(b, "  %s: %s", target.Way, target.ID)
		if target.UID != "" {
			fmt.Fprintf(b, " with uid %s", target.UID)
		}
		b.WriteString("\n")
	}
	for _, id := range r.Gone {
		fmt.Fprintf(b, "  gone: %s\n", id)
	}
	for _, w := range r.Pending {
		fmt.Fprintf(b, "  pending: %s until %s\n", w.ID, w.What)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(b, "  refused: %s (%s)\n", f, f.Reason)
	}
	if r.Hold != nil {
		fmt.Fprintf(b, "  held: %s (%s)\n", r.Hold.Why, r.Hold.Digest[:len("sha256:")+8])
		for _, id := range r.Hold.IDs {
			fmt.Fprintf(b, "    %s\n", id)
		}
	}
}
