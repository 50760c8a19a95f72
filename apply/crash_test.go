package apply

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// history is what Git wanted, commit by commit: objects come, change, move both
// ways and go, an add-on is deselected, and three objects belong to others.
func history(t *testing.T) []Wanted {
	t.Helper()
	foreign := configMapYAML("of-flux", "k: v") + configMapYAML("of-flux-other", "k: ours") + configMapYAML("of-kubectl", "k: v")
	return []Wanted{
		wants(t, "one", foreign+configMapYAML("a", "k: v")+configMapYAML("later", "k: v"), "two", configMapYAML("b", "k: v")+configMapYAML("earlier", "k: v"), "three", configMapYAML("c", "k: v")),
		wants(t, "one", foreign+configMapYAML("a", "k: w")+configMapYAML("earlier", "k: v"), "two", hookYAML+configMapYAML("b", "k: v")+configMapYAML("later", "k: w")),
		wants(t, "one", configMapYAML("a", "k: w")+configMapYAML("later", "k: w"), "two", configMapYAML("new", "k: v")),
	}
}

func TestADeathAtAnyWriteLosesNothingAndDeletesNothingElse(t *testing.T) {
	total := runHistory(t, -1, false)
	require.Greater(t, total, 25)
	for write := range total {
		for _, after := range []bool{false, true} {
			runHistory(t, write, after)
		}
	}
}

// runHistory plays the history with a death of the process before or after a
// write takes effect, and tells how many writes there were.
func runHistory(t *testing.T, write int, after bool) (writes int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, hookKind)
		where := fmt.Sprintf("death at write %d, after it %t", write, after)
		c.applyAs("kustomize-controller", "/ConfigMap/web/of-flux", false, map[string]any{"k": "v"})
		c.applyAs("kustomize-controller", "/ConfigMap/web/of-flux-other", false, map[string]any{"k": "theirs"})
		c.edit("kubectl-create", "/ConfigMap/web/of-kubectl", func(u *unstructured.Unstructured) { setData(u, "k", "v") })
		dead := false
		c.crash = func(n int, done bool) bool {
			dead = dead || (n == write && done == after)
			return dead
		}
		uids := map[string]string{}
		e := c.engine(t)
		for _, wanted := range history(t) {
			for e.untilQuiet(t, wanted) != nil {
				require.True(t, dead, where)
				e.stop()
				dead, write = false, -1
				e = c.engine(t)
			}
			checkUIDs(t, c, uids, where)
		}
		writes = len(c.writes)
		checkEnd(t, c, where)
		require.NoError(t, e.untilQuiet(t, history(t)[2]), where)
		assert.Len(t, c.writes, writes, "%s: a quiet cluster is not written to", where)
	})
	return writes
}

// untilQuiet makes passes until none has anything to do, or one fails.
func (e *testEngine) untilQuiet(t *testing.T, wanted Wanted) error {
	t.Helper()
	for range 200 {
		report, err := e.Pass(t.Context(), wanted)
		if err != nil {
			return err
		}
		synctest.Wait()
		select {
		case <-e.changed:
			continue
		default:
		}
		// What others own is asked for every few minutes, for ever.
		if report.Again == 0 || report.Again >= firstRetry {
			return nil
		}
		<-time.After(report.Again)
	}
	require.Fail(t, "two hundred passes, and no end")
	return nil
}

// checkUIDs sees to it that what stays wanted stays the same object.
func checkUIDs(t *testing.T, c *cluster, uids map[string]string, where string) {
	t.Helper()
	for _, name := range []string{"a", "b", "later", "earlier", "of-flux", "of-flux-other", "of-kubectl"} {
		object := c.get("/ConfigMap/web/" + name)
		if object == nil {
			continue
		}
		if uid := uids[name]; uid != "" {
			assert.Equal(t, uid, string(object.GetUID()), "%s: %s was made anew", where, name)
		}
		uids[name] = string(object.GetUID())
	}
}

func checkEnd(t *testing.T, c *cluster, where string) {
	t.Helper()
	var there []string
	for key, object := range c.objects {
		if strings.HasPrefix(key, "/ConfigMap/web/") || key == hookKey {
			there = append(there, key+"="+fmt.Sprint(object.Object["data"])+" "+object.GetLabels()[AddOnLabel])
		}
	}
	slices.Sort(there)
	assert.Equal(t, []string{
		"/ConfigMap/web/a=map[k:w] one", "/ConfigMap/web/later=map[k:w] one", "/ConfigMap/web/new=map[k:v] two",
		"/ConfigMap/web/of-flux-other=map[k:theirs] ", "/ConfigMap/web/of-flux=map[k:v] ",
	}, there, where)
	assert.Equal(t, map[string]string{
		"one-0": "/ConfigMap/web/a\n/ConfigMap/web/later\n", "two-0": "/ConfigMap/web/new\n",
	}, c.inventory(t), where)
	for _, name := range []string{"of-flux", "of-flux-other"} {
		assert.Equal(t, map[string]string{"kustomize-controller": "Apply"}, managers(c.objects["/ConfigMap/web/"+name]), where)
	}
}

// TestAnyHistoryEndsAsGitWants plays random commits with random deaths, faults
// and edits of others, and compares the end.
func TestAnyHistoryEndsAsGitWants(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &randomHistory{cluster: startCluster(t), random: rand.New(rand.NewPCG(seed, 1)), where: map[string]string{}}
				h.crash = func(int, bool) bool {
					h.left--
					h.dead = h.dead || h.left == 0
					return h.dead
				}
				var wanted Wanted
				e := h.engine(t)
				for range 8 {
					wanted = h.commit(t)
					e = h.play(t, e, wanted)
				}
				h.left, h.deny = 0, nil
				h.checkEnd(t, wanted, e.settle(t, wanted, time.Hour))
			})
		})
	}
}

type randomHistory struct {
	*cluster
	random *rand.Rand
	// where is the add-on of each object, left how many writes the process has
	// before it dies.
	where map[string]string
	left  int
	dead  bool
}

func (h *randomHistory) names() []string { return []string{"a", "b", "c", "d", "e", "f", "g", "h"} }

// commit moves, changes, adds and removes objects.
func (h *randomHistory) commit(t *testing.T) Wanted {
	t.Helper()
	yaml := map[string]string{}
	for _, name := range h.names() {
		if h.random.IntN(3) == 0 {
			h.where[name] = []string{"", "one", "two", "three"}[h.random.IntN(4)]
		}
		yaml[h.where[name]] += configMapYAML(name, fmt.Sprint("k: v", h.random.IntN(2)))
	}
	var addOns []string
	for _, addOn := range []string{"one", "two", "three"} {
		if yaml[addOn] != "" {
			addOns = append(addOns, addOn, yaml[addOn])
		}
	}
	return wants(t, addOns...)
}

// play makes passes on a server with faults, and gives the engine that is alive
// at the end.
func (h *randomHistory) play(t *testing.T, e *testEngine, wanted Wanted) *testEngine {
	t.Helper()
	h.left = h.random.IntN(40)
	h.deny = func(string, string) *apierrors.StatusError {
		if h.random.IntN(12) == 0 {
			return apierrors.NewInternalError(assert.AnError)
		}
		return nil
	}
	for e.untilQuiet(t, wanted) != nil {
		if h.dead {
			e.stop()
			h.dead = false
			e = h.engine(t)
		}
	}
	if key := "/ConfigMap/web/" + h.names()[h.random.IntN(8)]; h.get(key) != nil {
		h.edit("someone", key, func(u *unstructured.Unstructured) { setData(u, "k", "x") })
	}
	return e
}

func (h *randomHistory) checkEnd(t *testing.T, wanted Wanted, report Report) {
	t.Helper()
	assert.Empty(t, report.Strays)
	for _, addOn := range report.AddOns {
		assert.True(t, addOn.Applied() && addOn.Healthy() && addOn.Quiet(), "%+v", addOn)
	}
	got, want, held := map[string]string{}, map[string]string{}, map[string]string{}
	for _, addOn := range wanted.AddOns {
		for _, o := range addOn.Objects {
			want[o.Name] = addOn.Name + " " + o.Digest
			held[addOn.Name+"-0"] += "/ConfigMap/web/" + o.Name + "\n"
		}
	}
	for _, name := range h.names() {
		if object := h.get("/ConfigMap/web/" + name); object != nil {
			owner := object.GetLabels()[AddOnLabel]
			objects, _ := Decode(owner, []Manifest{{bare(object), ""}})
			got[name] = owner + " " + objects[0].Digest
		}
	}
	assert.Equal(t, want, got)
	assert.Equal(t, held, h.inventory(t))
}

// bare is an object as Git would have it.
func bare(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := blank(u.GroupVersionKind())
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	out.Object["data"] = u.Object["data"]
	return out
}
