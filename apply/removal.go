package apply

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/types"
)

// Removal is what becomes of the objects that an add-on holds and nobody wants.
type Removal struct {
	// Now are the objects to deal with now: one request each, or a read first.
	Now []Target
	// Gone need nothing more: their kind is not served any more, or they never
	// were ours.
	Gone []ID
	// Pending are to be deleted after others, or are being deleted.
	Pending []Waiting
	// Failures are removals that were refused and wait for their next try.
	Failures []Failure
	// Hold is what is not deleted without consent. Nil is nothing.
	Hold *Hold
}

// Target is an object to get rid of.
type Target struct {
	ID       ID
	Resource Resource
	Way      Way
	// UID is the incarnation to delete.
	UID types.UID
}

// Way is how to get rid of an object.
type Way string

const (
	// Delete deletes the incarnation that was seen.
	Delete Way = "delete"
	// Check reads first: the object is not in sight, which may mean that it is
	// gone, or that somebody took our label off it.
	Check Way = "check"
	// Look reads only: the object is not in sight, and must not be deleted
	// without consent.
	Look Way = "look"
	// Release takes our label and our field manager off and leaves the object.
	Release Way = "release"
)

// Hold is a set of deletions that wait for consent.
type Hold struct {
	// IDs are sorted, and Digest is "sha256:" and the hash of their keys, so
	// that equal clusters share it and it can be told from Git alone.
	IDs    []ID
	Digest string
	// Why says which rule holds them.
	Why string
}

// Bounds of what is deleted without asking.
const (
	freeDeletes = 5
	freePercent = 20
)

func (p *planner) removals(out *AddOnPlan, allowed bool) {
	var leaving []ID
	for id := range out.Hold {
		switch {
		case out.Wanted[id] || p.claims[id]:
		case p.wants(id):
			out.Moved = append(out.Moved, id)
		default:
			leaving = append(leaving, id)
		}
	}
	slices.SortFunc(out.Moved, ID.Compare)
	slices.SortFunc(leaving, ID.Compare)
	if !allowed {
		for _, id := range leaving {
			out.Removal.Pending = append(out.Removal.Pending, Waiting{id, "all add-ons to be known at the newest revision"})
		}
		return
	}
	leaving = p.letGo(out, leaving)
	leaving = p.hold(out, leaving)
	p.look(out)
	p.deletions(out, leaving)
}

// served gives how a kind is served. A kind that is silent now may be served
// soon.
func (p *planner) served(id ID) (Resource, error) {
	resource, err := p.seen.Kinds.Any(id.GroupKind())
	if errors.Is(err, ErrUndiscovered) {
		p.plan.Unserved = true
	}
	return resource, err
}

// now has an object dealt with, unless it was refused a while ago.
func (p *planner) now(out *AddOnPlan, target Target) {
	if retry, ok := p.seen.Retries[target.ID]; ok && retry.Digest == "" && p.seen.Now.Before(retry.Next) {
		out.Removal.Failures = append(out.Removal.Failures, retry.Failure)
		return
	}
	out.Removal.Now = append(out.Removal.Now, target)
}

// letGo sorts out what is not deleted: released, or not ours.
func (p *planner) letGo(out *AddOnPlan, leaving []ID) []ID {
	var rest []ID
	for _, id := range leaving {
		live, present := p.live(id)
		resource, err := p.served(id)
		switch {
		case errors.Is(err, ErrNotServed):
			out.Removal.Gone = append(out.Removal.Gone, id)
		case present && !live.Owned():
			out.Removal.Gone = append(out.Removal.Gone, id)
		case present && live.Prune == PruneDisabled && err == nil:
			p.now(out, Target{ID: id, Resource: resource, Way: Release})
		default:
			rest = append(rest, id)
		}
	}
	return rest
}

// hold takes out what is not deleted without consent: too many at once, or too
// dear.
func (p *planner) hold(out *AddOnPlan, leaving []ID) []ID {
	if len(leaving) > freeDeletes && len(leaving)*100 > len(out.Hold)*freePercent {
		out.Removal.Hold = newHold(leaving, fmt.Sprintf("%d of %d objects would be deleted", len(leaving), len(out.Hold)))
		return nil
	}
	isProtected := func(id ID) bool {
		live, _ := p.live(id)
		return protected(id) || live.Prune == PruneConfirm
	}
	dear := slices.DeleteFunc(slices.Clone(leaving), func(id ID) bool { return !isProtected(id) })
	if len(dear) > 0 {
		out.Removal.Hold = newHold(dear, "protected objects would be deleted")
	}
	return slices.DeleteFunc(leaving, isProtected)
}

// look has the held objects that are out of sight read: what is gone already
// needs no consent.
func (p *planner) look(out *AddOnPlan) {
	if out.Removal.Hold == nil {
		return
	}
	for _, id := range out.Removal.Hold.IDs {
		_, present := p.live(id)
		resource, err := p.served(id)
		if err == nil && !present && p.seen.Synced[id.GroupKind()] {
			p.now(out, Target{ID: id, Resource: resource, Way: Look})
		}
	}
}

func newHold(ids []ID, why string) *Hold {
	var keys strings.Builder
	for _, id := range ids {
		keys.WriteString(id.Key() + "\n")
	}
	sum := sha256.Sum256([]byte(keys.String()))
	return &Hold{IDs: ids, Digest: "sha256:" + hex.EncodeToString(sum[:]), Why: why}
}

// protected are the kinds whose deletion takes more with it than themselves,
// and what we need to live.
func protected(id ID) bool {
	switch id.GroupKind().String() {
	case kindNamespace, kindDefinition, "PersistentVolume", "PersistentVolumeClaim":
		return true
	}
	return id.Group == "cluster.x-k8s.io" || strings.HasSuffix(id.Group, ".cluster.x-k8s.io") ||
		id.Namespace == ownNamespace
}

// deletions orders what is left: the last stage first, the next one when those
// are gone.
func (p *planner) deletions(out *AddOnPlan, leaving []ID) {
	last := Stage(-1)
	for _, id := range leaving {
		last = max(last, stageOf(id, p.params))
	}
	for _, id := range leaving {
		live, present := p.live(id)
		resource, err := p.served(id)
		switch {
		case err != nil:
			out.Removal.Pending = append(out.Removal.Pending, Waiting{id, err.Error()})
		case !p.seen.Synced[id.GroupKind()]:
			out.Removal.Pending = append(out.Removal.Pending, Waiting{id, "its kind to be listed"})
		case live.Deleting:
			out.Removal.Pending = append(out.Removal.Pending, Waiting{id, "its deletion to finish" + finalizers(live)})
		case stageOf(id, p.params) < last:
			out.Removal.Pending = append(out.Removal.Pending, Waiting{id, "objects that may need it to be gone"})
		case !present:
			p.now(out, Target{ID: id, Resource: resource, Way: Check})
		default:
			p.now(out, Target{ID: id, Resource: resource, Way: Delete, UID: live.UID})
		}
	}
}

// kindOrder is the order of kinds within a stage, as Flux has it.
type kindOrder map[string]int

func newKindOrder() kindOrder {
	order := kindOrder{}
	for i, kind := range ssa.ReconcileOrder.First {
		order[kind] = i - len(ssa.ReconcileOrder.First)
	}
	for i, kind := range ssa.ReconcileOrder.Last {
		order[kind] = i + 1
	}
	return order
}

func (o kindOrder) compare(a, b ID) int {
	return cmp.Or(cmp.Compare(o[a.Kind], o[b.Kind]), a.Compare(b))
}
