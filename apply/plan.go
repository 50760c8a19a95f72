package apply

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Wanted is what a cluster should hold.
type Wanted struct {
	// AddOns are the selected add-ons, in the order of the fleet file.
	AddOns []AddOn
	// Whole says that all selected add-ons are known as of the newest revision.
	// While it is false nothing is pruned anywhere: an object that left one
	// add-on may be on its way into the one that is not known.
	Whole bool
}

// AddOn is what one add-on wants.
type AddOn struct {
	Name string
	// Objects are to be applied and kept.
	Objects []Object
	// Claims are wanted by a newer revision that is not rolled out yet: they
	// are not applied, and not pruned.
	Claims []Object
	// Failures are objects that did not pass the edge.
	Failures []Failure
	// Whole says that Objects are all of the add-on as of the newest revision:
	// what else it holds may go.
	Whole bool
}

// Observed is what planning reads beside Wanted.
type Observed struct {
	Inventory Inventory
	Kinds     Kinds
	// Live are the objects with our label, and Synced the kinds that are known
	// whole.
	Live   map[ID]Live
	Synced map[schema.GroupKind]bool
	// Applied are our last applies, and Retries the refused ones.
	Applied map[ID]Applied
	Retries map[ID]Retry
	Now     time.Time
}

// Applied remembers our last apply of an object: what we sent, and what its
// answer said that we own.
type Applied struct {
	Digest string
	Fields string
	Live   Live
}

// Retry remembers a refused apply or delete.
type Retry struct {
	Digest   string
	Failure  Failure
	Attempts int
	Next     time.Time
}

// Why says why an object is applied.
type Why string

// The causes of an apply.
const (
	// FirstContact: the object is not ours yet; it is applied without force.
	FirstContact Why = "first contact"
	// Changed: what is wanted is not what was applied last, or that is not
	// known, as after a restart.
	Changed Why = "changed"
	// Missing: it was applied and is gone.
	Missing Why = "missing"
	// Drifted: another writer changed a field that we set.
	Drifted Why = "drifted"
)

// Step is one apply.
type Step struct {
	ID       ID
	Object   Object
	Resource Resource
	Stage    Stage
	Why      Why
}

// Waiting is an object for which nothing can be done now, and what it waits for.
type Waiting struct {
	ID   ID
	What string
}

// Plan is what to do, add-on by add-on. It is a pure function of what is wanted
// and what was observed.
type Plan struct {
	AddOns []AddOnPlan
	// Strays carry our label and our fields, but no inventory holds them and
	// nothing wants them: an inventory was lost. They are reported, never pruned.
	Strays []ID
	// Unserved tells that a wanted kind is not served yet.
	Unserved bool
}

// AddOnPlan is the plan of one add-on.
type AddOnPlan struct {
	Name string
	// Selected is false for an add-on that only the inventory knows.
	Selected bool
	// Objects is how many it wants, and Wanted their identities.
	Objects int
	Wanted  map[ID]bool
	// Hold is the inventory to write before the first step.
	Hold Set
	// Steps are the applies by stage.
	Steps [stages][]Step
	// Waiting and Failures are known without asking the API server.
	Waiting  []Waiting
	Failures []Failure
	// Moved are objects that another add-on wants now.
	Moved []ID
	// Removal is what to do with the objects that it holds and nobody wants.
	Removal Removal
}

// planner carries what is shared while a plan is made.
type planner struct {
	wanted Wanted
	seen   Observed
	params map[schema.GroupKind]bool
	// owners are the add-ons that want an object, claims those that will.
	owners map[ID][]owner
	claims map[ID]bool
	order  kindOrder
	plan   Plan
}

type owner struct{ addOn, file string }

// NewPlan makes the plan.
func NewPlan(wanted Wanted, seen Observed) Plan {
	p := &planner{
		wanted: wanted, seen: seen, order: newKindOrder(),
		params: map[schema.GroupKind]bool{}, owners: map[ID][]owner{}, claims: map[ID]bool{},
	}
	p.register()
	for _, addOn := range wanted.AddOns {
		p.plan.AddOns = append(p.plan.AddOns, p.addOn(addOn))
	}
	for _, name := range seen.Inventory.names() {
		if !slices.ContainsFunc(wanted.AddOns, func(a AddOn) bool { return a.Name == name }) {
			p.plan.AddOns = append(p.plan.AddOns, p.deselected(name))
		}
	}
	p.moves()
	p.strays()
	return p.plan
}

// register notes who wants what, before any decision is made.
func (p *planner) register() {
	for _, addOn := range p.wanted.AddOns {
		for _, o := range addOn.Objects {
			if o.Params.Kind != "" {
				p.params[o.Params] = true
			}
			id, _ := p.seen.Kinds.Identify(o)
			p.owners[id] = append(p.owners[id], owner{addOn.Name, o.File})
		}
		for _, o := range addOn.Claims {
			id, _ := p.seen.Kinds.Identify(o)
			p.claims[id] = true
		}
		for _, failure := range addOn.Failures {
			p.claims[failure.ID] = true
		}
	}
}

func (p *planner) addOn(addOn AddOn) AddOnPlan {
	out := AddOnPlan{
		Name: addOn.Name, Selected: true, Objects: len(addOn.Objects) + len(addOn.Failures), Wanted: map[ID]bool{},
		Hold: maps.Clone(p.seen.Inventory[addOn.Name]), Failures: slices.Clone(addOn.Failures),
	}
	if out.Hold == nil {
		out.Hold = Set{}
	}
	for _, o := range addOn.Objects {
		p.object(&out, o)
	}
	for stage := range out.Steps {
		slices.SortFunc(out.Steps[stage], func(a, b Step) int { return p.order.compare(a.ID, b.ID) })
	}
	p.removals(&out, addOn.Whole && p.wanted.Whole)
	return out
}

func (p *planner) deselected(name string) AddOnPlan {
	out := AddOnPlan{Name: name, Hold: maps.Clone(p.seen.Inventory[name])}
	p.removals(&out, p.wanted.Whole)
	return out
}

// object decides about one wanted object.
func (p *planner) object(out *AddOnPlan, o Object) {
	id, known := p.seen.Kinds.Identify(o)
	out.Wanted[id] = true
	resource, failure, waiting := p.servable(id, o)
	switch {
	case failure != nil:
		out.Failures = append(out.Failures, *failure)
		return
	case waiting != "":
		out.Waiting = append(out.Waiting, Waiting{id, waiting})
		return
	}
	why, waiting := p.why(id, o)
	if waiting != "" {
		out.Waiting = append(out.Waiting, Waiting{id, waiting})
	}
	if why == "" {
		return
	}
	if retry, ok := p.seen.Retries[id]; ok && retry.Digest == o.Digest && p.seen.Now.Before(retry.Next) {
		out.Failures = append(out.Failures, retry.Failure)
		return
	}
	if _, held := out.Hold[id]; !held && known {
		out.Hold[id] = Intended
	}
	stage := stageOf(id.GroupKind(), p.params)
	out.Steps[stage] = append(out.Steps[stage], Step{ID: id, Object: o, Resource: resource, Stage: stage, Why: why})
}

// servable tells whether an object can be sent at all.
func (p *planner) servable(id ID, o Object) (Resource, *Failure, string) {
	fail := func(reason Reason, format string, args ...any) (Resource, *Failure, string) {
		return Resource{}, &Failure{ID: id, File: o.File, Reason: reason, Message: fmt.Sprintf(format, args...)}, ""
	}
	if owners := p.owners[id]; len(owners) > 1 {
		return fail(DuplicateObject, "it is in %s: keep it in one of them", places(owners))
	}
	resource, err := p.seen.Kinds.Resource(o.GVK)
	switch {
	case errors.Is(err, ErrNotServed):
		p.plan.Unserved = true
		if _, defined := p.seen.Kinds.defined[o.GVK.GroupKind()]; defined {
			return Resource{}, nil, "its CustomResourceDefinition to be established"
		}
		return fail(KindNotServed, "%v: add its CustomResourceDefinition, or mend apiVersion and kind", err)
	case err != nil:
		p.plan.Unserved = true
		return Resource{}, nil, err.Error()
	case resource.Namespaced && id.Namespace == "":
		return fail(InvalidObject, "metadata.namespace is missing: set it in the file or in the kustomization")
	}
	if ns, live := p.seen.Live[ID{Kind: kindNamespace, Name: id.Namespace}]; id.Namespace != "" && live && ns.Deleting {
		return Resource{}, nil, "Namespace/" + id.Namespace + " to be gone"
	}
	return resource, nil, ""
}

func places(owners []owner) string {
	var all []string
	for _, o := range owners {
		all = append(all, fmt.Sprintf("add-on %s (%s)", o.addOn, o.file))
	}
	return strings.Join(all, " and ")
}

// why compares what is wanted, what was applied and what is live. An empty
// answer is: nothing to do.
func (p *planner) why(id ID, o Object) (Why, string) {
	live, present := p.seen.Live[id]
	if live.Deleting {
		return "", "the old one to be gone" + finalizers(live)
	}
	if !live.Owned() && !p.seen.Inventory.Holds(id) {
		return FirstContact, ""
	}
	applied, remembered := p.seen.Applied[id]
	switch {
	case !remembered || applied.Digest != o.Digest:
		return Changed, ""
	case !present && p.seen.Synced[id.GroupKind()]:
		return Missing, ""
	case present && (live.UID != applied.Live.UID || live.Fields != applied.Fields):
		return Drifted, ""
	}
	return "", ""
}

func finalizers(live Live) string {
	if len(live.Finalizers) == 0 {
		return ""
	}
	return " (finalizers: " + strings.Join(live.Finalizers, ", ") + ")"
}

// moves keeps an object in the old add-on's inventory until the new one's holds
// it: it is never in none.
func (p *planner) moves() {
	for i := range p.plan.AddOns {
		a := &p.plan.AddOns[i]
		a.Moved = slices.DeleteFunc(a.Moved, func(id ID) bool {
			return !slices.ContainsFunc(p.plan.AddOns, func(b AddOnPlan) bool {
				_, holds := b.Hold[id]
				return holds && b.Name != a.Name
			})
		})
	}
}

// strays finds objects that carry our label and our fields, and that nobody
// accounts for.
func (p *planner) strays() {
	for id, live := range p.seen.Live {
		if !live.Owned() || len(p.owners[id]) > 0 || p.claims[id] {
			continue
		}
		if !slices.ContainsFunc(p.plan.AddOns, func(a AddOnPlan) bool { _, ok := a.Hold[id]; return ok }) {
			p.plan.Strays = append(p.plan.Strays, id)
		}
	}
	slices.SortFunc(p.plan.Strays, ID.Compare)
}
