package apply

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// pool are the objects that a random cluster is made of.
func pool() []ID {
	ids := []ID{
		{Kind: "Namespace", Name: "web"},
		{Kind: "Namespace", Name: "db"},
		{Kind: "ServiceAccount", Namespace: "web", Name: "sa"},
		{Group: groupAccess, Kind: "ClusterRole", Name: "reader"},
		{Group: groupAdmission, Kind: "ValidatingWebhookConfiguration", Name: "hook"},
		{Group: "example.com", Kind: "Widget", Namespace: "web", Name: "w"},
		{Group: "silent.example.com", Kind: "Reading", Namespace: "web", Name: "r"},
	}
	for i := range 14 {
		ids = append(ids, ID{Kind: "ConfigMap", Namespace: []string{"web", "db"}[i%2], Name: fmt.Sprintf("c%02d", i)})
	}
	return ids
}

// world is a random input of NewPlan.
type world struct {
	random *rand.Rand
	wanted Wanted
	seen   Observed
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{random: rand.New(rand.NewPCG(seed, 7))}
	w.seen = Observed{
		Inventory: Inventory{}, Kinds: commonKinds(t), Live: map[ID]*Live{}, Synced: map[schema.GroupKind]bool{},
		Applied: map[ID]Applied{}, Retries: map[ID]Retry{}, Now: planNow,
	}
	w.seen.Kinds.silent[schema.GroupVersion{Group: "silent.example.com", Version: "v1"}] = true
	for _, id := range pool() {
		w.seen.Synced[id.GroupKind()] = w.one(9, 10)
	}
	w.wanted.Whole = w.one(4, 5)
	for i := range w.random.IntN(4) {
		w.wanted.AddOns = append(w.wanted.AddOns, w.addOn(t, fmt.Sprintf("add-on-%d", i)))
	}
	w.seen.Kinds = w.seen.Kinds.With(w.wanted)
	for _, id := range pool() {
		w.observe(id)
	}
	return w
}

func (w *world) one(n, of int) bool { return w.random.IntN(of) < n }

func (w *world) addOn(t *testing.T, name string) AddOn {
	t.Helper()
	addOn := AddOn{Name: name, Whole: w.one(4, 5)}
	var objects, claims []Manifest
	for _, id := range pool() {
		version := map[string]string{"": "v1"}[id.Group]
		if version == "" {
			version = id.Group + "/v1"
		}
		namespace := id.Namespace
		if namespace == "" {
			namespace = []string{"", "elsewhere"}[w.random.IntN(2)]
		}
		m := Manifest{objectOf(t, []string{version, id.Kind, id.Name}), name + ".yaml"}
		m.SetNamespace(namespace)
		if w.one(1, 30) {
			m.SetName("a/b") // does not pass the edge
		}
		switch {
		case w.one(1, 4):
			objects = append(objects, m)
		case w.one(1, 15):
			claims = append(claims, m)
		}
	}
	addOn.Objects, addOn.Failures = Decode(name, objects)
	addOn.Claims, _ = Decode(name, claims)
	if w.one(2, 3) {
		addOn.Failures = nil
	}
	return addOn
}

func (w *world) observe(id ID) {
	for i := range 4 {
		name := fmt.Sprintf("add-on-%d", i)
		if !w.one(1, 4) {
			continue
		}
		if w.seen.Inventory[name] == nil {
			w.seen.Inventory[name] = Set{}
		}
		w.seen.Inventory[name][id] = Holding(w.one(3, 4))
	}
	if w.one(3, 4) {
		live := &Live{UID: "u", Version: 1, Fields: []string{"f", "f", "f", "other", ""}[w.random.IntN(5)]}
		live.Deleting = w.one(1, 10)
		live.Prune = []string{"", "", "", PruneConfirm, PruneDisabled}[w.random.IntN(5)]
		w.seen.Live[id] = live
	}
	digests := w.digests()
	if w.one(1, 2) {
		w.seen.Applied[id] = Applied{Digest: []string{digests[id], "old"}[w.random.IntN(2)], UID: "u", Fields: "f"}
	}
	if w.one(1, 8) {
		w.seen.Retries[id] = Retry{Digest: []string{digests[id], "old", ""}[w.random.IntN(3)], Next: planNow.Add(time.Duration(w.random.IntN(3) - 1)), Failure: Failure{ID: id, Message: "no"}}
	}
}

func (w *world) digests() map[ID]string {
	all := map[ID]string{}
	for _, addOn := range w.wanted.AddOns {
		for _, o := range addOn.Objects {
			all[w.seen.Kinds.Identify(o)] = o.Digest
		}
	}
	return all
}

// kept are the objects that some add-on wants, or will want.
func (w *world) kept() map[ID]bool {
	all := map[ID]bool{}
	for o := range w.wanted.all() {
		all[w.seen.Kinds.Identify(*o)] = true
	}
	return all
}

// edge tells whether some object did not pass the edge.
func (w *world) edge() bool {
	return slices.ContainsFunc(w.wanted.AddOns, func(a AddOn) bool { return len(a.Failures) > 0 })
}

const worlds = 1000

func TestNothingIsRemovedThatAnyAddOnWantsOrClaims(t *testing.T) {
	removals := 0
	for seed := range uint64(worlds) {
		w := newWorld(t, seed)
		kept := w.kept()
		for _, addOn := range NewPlan(w.wanted, w.seen).AddOns {
			for _, target := range addOn.Removal.Now {
				removals++
				require.False(t, kept[target.ID], "seed %d: %s %s", seed, target.Way, target.ID)
			}
			for _, id := range addOn.Removal.Gone {
				require.False(t, kept[id], "seed %d: %s let go of", seed, id)
			}
			if addOn.Removal.Hold == nil {
				continue
			}
			for _, id := range addOn.Removal.Hold.IDs {
				require.False(t, kept[id], "seed %d: %s held", seed, id)
			}
		}
	}
	require.Greater(t, removals, worlds, "the worlds are too tame")
}

func TestNothingIsRemovedWhileSomethingIsNotKnown(t *testing.T) {
	quiet := 0
	for seed := range uint64(worlds) {
		w := newWorld(t, seed)
		for _, addOn := range NewPlan(w.wanted, w.seen).AddOns {
			i := slices.IndexFunc(w.wanted.AddOns, func(a AddOn) bool { return a.Name == addOn.Name })
			known := i < 0 || (w.wanted.AddOns[i].Whole && len(w.wanted.AddOns[i].Objects) > 0)
			if known && w.wanted.Whole && !w.edge() {
				continue
			}
			quiet++
			r := addOn.Removal
			require.Zero(t, len(r.Now)+len(r.Gone)+len(r.Failures), "seed %d: %+v", seed, r)
			require.Nil(t, r.Hold, "seed %d", seed)
		}
	}
	require.Greater(t, quiet, worlds/2)
}

func TestOnlyWhatIsOursInSightAndFreeIsDeleted(t *testing.T) {
	for seed := range uint64(worlds) {
		w := newWorld(t, seed)
		for _, addOn := range NewPlan(w.wanted, w.seen).AddOns {
			deleted := 0
			for _, target := range addOn.Removal.Now {
				id, live := target.ID, w.seen.Live[target.ID]
				_, inInventory := w.seen.Inventory[addOn.Name][id]
				require.True(t, inInventory, "seed %d: %s is in no inventory", seed, id)
				if target.Way == Look || target.Way == Release {
					continue
				}
				deleted++
				require.True(t, w.seen.Synced[id.GroupKind()], "seed %d: %s is not listed", seed, id)
				require.False(t, protected(id), "seed %d: %s is protected", seed, id)
				if target.Way == Check {
					require.Nil(t, live, "seed %d", seed)
					continue
				}
				require.True(t, live != nil && live.Owned() && !live.Deleting && live.UID == target.UID, "seed %d: %s", seed, id)
				require.Equal(t, "", live.Prune, "seed %d: %s", seed, id)
			}
			require.False(t, deleted > freeDeletes && deleted*100 > len(addOn.Hold)*freePercent, "seed %d: %d deleted", seed, deleted)
		}
	}
}

func TestWhatIsAppliedIsInTheInventoryAndForcedOnlyIfItIsOurs(t *testing.T) {
	for seed := range uint64(worlds) {
		w := newWorld(t, seed)
		for _, addOn := range NewPlan(w.wanted, w.seen).AddOns {
			for _, steps := range addOn.Steps {
				for _, step := range steps {
					_, noted := addOn.Hold[step.ID]
					require.True(t, noted, "seed %d: %s is not written down", seed, step.ID)
					require.Equal(t, w.seen.Inventory.Holds(step.ID), step.Why != FirstContact, "seed %d: %s", seed, step.ID)
					live := w.seen.Live[step.ID]
					require.False(t, live != nil && live.Deleting, "seed %d: %s is on its way out", seed, step.ID)
				}
			}
		}
	}
}

func TestWhatAnyInventoryHoldsStaysInOneUntilItIsGone(t *testing.T) {
	for seed := range uint64(worlds) {
		w := newWorld(t, seed)
		plan := NewPlan(w.wanted, w.seen)
		after := map[ID]bool{}
		for _, addOn := range plan.AddOns {
			for id := range addOn.Hold {
				after[id] = after[id] || !slices.Contains(addOn.Moved, id)
			}
		}
		for name, set := range w.seen.Inventory {
			for id := range set {
				require.True(t, after[id], "seed %d: %s of %s is in no inventory", seed, id, name)
			}
		}
	}
}

func TestAPlanIsAFunctionOfItsInputAndLeavesItAlone(t *testing.T) {
	for seed := range uint64(300) {
		w, same := newWorld(t, seed), newWorld(t, seed)
		first := NewPlan(w.wanted, w.seen)
		for range 3 {
			require.Empty(t, cmp.Diff(first, NewPlan(w.wanted, w.seen)), "seed %d: -first +again", seed)
		}
		require.Empty(t, cmp.Diff(same.seen, w.seen, cmp.AllowUnexported(Kinds{})), "seed %d: -before +after", seed)
		require.Empty(t, cmp.Diff(same.wanted, w.wanted), "seed %d: -before +after", seed)
	}
}

// TestAPlanThatSucceedsLeavesNothingToDo does what each plan says, as if all
// went well, until there is nothing left: level-based, and without an end that
// depends on the way.
func TestAPlanThatSucceedsLeavesNothingToDo(t *testing.T) {
	for seed := range uint64(worlds) {
		w := newWorld(t, seed)
		for round := 0; ; round++ {
			require.Less(t, round, 12, "seed %d: it does not end", seed)
			if !w.carryOut(NewPlan(w.wanted, w.seen)) {
				break
			}
			w.seen.Now = w.seen.Now.Add(time.Hour)
		}
		plan := NewPlan(w.wanted, w.seen)
		for _, addOn := range plan.AddOns {
			require.Zero(t, countSteps(Plan{AddOns: []AddOnPlan{addOn}}), "seed %d", seed)
			for _, target := range addOn.Removal.Now {
				require.Equal(t, Look, target.Way, "seed %d", seed)
			}
			require.Empty(t, addOn.Moved, "seed %d: moved and moved again", seed)
			require.Equal(t, w.seen.Inventory[addOn.Name], addOn.Hold, "seed %d: the inventory is as it should be", seed)
		}
	}
}

// carryOut makes the world what a plan wants, and tells whether it did anything.
func (w *world) carryOut(plan Plan) (did bool) {
	for gk := range w.seen.Synced {
		w.seen.Synced[gk] = true
	}
	for id, live := range w.seen.Live {
		if live.Deleting { // finalizers come to their end
			delete(w.seen.Live, id)
			did = true
		}
	}
	for _, addOn := range plan.AddOns {
		next := maps.Clone(addOn.Hold)
		applied, removed := w.apply(addOn, next), w.remove(addOn, next)
		did = did || applied || removed || len(addOn.Failures) > 0 && len(w.seen.Retries) > 0
		w.seen.Inventory[addOn.Name] = next
		if len(next) == 0 && !addOn.Selected {
			delete(w.seen.Inventory, addOn.Name)
		}
	}
	clear(w.seen.Retries)
	return did
}

func (w *world) apply(addOn AddOnPlan, next Set) (did bool) {
	for _, steps := range addOn.Steps {
		for _, step := range steps {
			did = true
			next[step.ID] = Held
			w.seen.Live[step.ID] = &Live{UID: "u", Version: 2, Fields: "f"}
			w.seen.Applied[step.ID] = Applied{Digest: step.Object.Digest, UID: "u", Fields: "f"}
		}
	}
	return did
}

func (w *world) remove(addOn AddOnPlan, next Set) (did bool) {
	for _, target := range addOn.Removal.Now {
		if target.Way == Look {
			continue
		}
		did = true
		delete(w.seen.Live, target.ID)
		delete(next, target.ID)
	}
	for _, id := range slices.Concat(addOn.Moved, addOn.Removal.Gone) {
		did = true
		delete(next, id)
	}
	return did
}
