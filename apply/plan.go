package apply

import (
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	// Failures are objects that did not pass the edge. While there are any,
	// nothing is pruned anywhere: what they are meant to be is not known.
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
	Live   map[ID]*Live
	Synced map[schema.GroupKind]bool
	// Applied are our last applies, and Retries the refused ones.
	Applied map[ID]Applied
	Retries map[ID]Retry
	// Unborn is that there is no Service default/kubernetes yet.
	Unborn bool
	Now    time.Time
}

// repairs tells that the object was as wanted once.
func (w Why) repairs() bool { return w == Missing || w == Drifted || w == Unverified }

// Applied remembers our last apply of an object: what we sent, to which
// incarnation, and what its answer said that we own.
type Applied struct {
	Digest string
	Fields string
	UID    types.UID
	// Verify is when to apply it once more although nothing tells of a change.
	// Zero is never.
	Verify time.Time
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
	// FirstContact: no inventory says that we have applied the object; it is
	// applied without force.
	FirstContact Why = "first contact"
	// Changed: what is wanted is not what was applied last, or that is not
	// known, as after a restart.
	Changed Why = "changed"
	// Missing: it was applied and is gone.
	Missing Why = "missing"
	// Drifted: another writer changed a field that we set.
	Drifted Why = "drifted"
	// Unverified: nobody has told of a change for hours. It is applied again, in
	// case a watch missed one.
	Unverified Why = "unverified"
)

// Step is one apply.
type Step struct {
	ID       ID
	Object   Object
	Resource Resource
	Stage    Stage
	Why      Why
	// Version is the resourceVersion in sight, and 0 where none is.
	Version uint64
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
	// owners are the first add-ons that want an object, rivals all of them
	// where they are more, and claims are the objects that will be wanted.
	owners map[ID]owner
	rivals map[ID][]owner
	claims map[ID]bool
	order  kindOrder
	plan   Plan
}

type owner struct{ addOn, file string }

// objects is how many objects are wanted.
func (w Wanted) objects() int {
	n := 0
	for _, addOn := range w.AddOns {
		n += len(addOn.Objects)
	}
	return n
}

// has tells whether there is an object of a kind to apply.
func (w Wanted) has(gk schema.GroupKind) bool {
	return slices.ContainsFunc(w.AddOns, func(a AddOn) bool {
		return slices.ContainsFunc(a.Objects, func(o Object) bool { return o.GVK.GroupKind() == gk })
	})
}

// all gives what is wanted, and what will be.
func (w Wanted) all() iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		for _, addOn := range w.AddOns {
			for _, objects := range [][]Object{addOn.Objects, addOn.Claims} {
				for i := range objects {
					if !yield(&objects[i]) {
						return
					}
				}
			}
		}
	}
}

// NewPlan makes the plan.
func NewPlan(wanted Wanted, seen Observed) Plan {
	p := &planner{
		wanted: wanted, seen: seen, order: newKindOrder(),
		params: map[schema.GroupKind]bool{}, owners: make(map[ID]owner, wanted.objects()), rivals: map[ID][]owner{}, claims: map[ID]bool{},
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
			p.own(p.seen.Kinds.Identify(o), owner{addOn.Name, o.File})
		}
		for _, o := range addOn.Claims {
			p.claims[p.seen.Kinds.Identify(o)] = true
		}
		for _, failure := range addOn.Failures {
			p.claims[failure.ID] = true
			p.wanted.Whole = false
		}
	}
}

func (p *planner) own(id ID, o owner) {
	first, taken := p.owners[id]
	if !taken {
		p.owners[id] = o
		return
	}
	if p.rivals[id] == nil {
		p.rivals[id] = []owner{first}
	}
	p.rivals[id] = append(p.rivals[id], o)
}

func (p *planner) wants(id ID) bool {
	_, wanted := p.owners[id]
	return wanted
}

// live gives what is in sight of an object.
func (p *planner) live(id ID) (live Live, present bool) {
	if l := p.seen.Live[id]; l != nil {
		return *l, true
	}
	return Live{}, false
}

// held tells whether some add-on has applied the object: most often the one
// that wants it.
func (p *planner) held(out *AddOnPlan, id ID) bool {
	return out.Hold[id] == Held || p.seen.Inventory.Holds(id)
}

func (p *planner) addOn(addOn AddOn) AddOnPlan {
	out := AddOnPlan{
		Name: addOn.Name, Selected: true, Objects: len(addOn.Objects) + len(addOn.Failures), Wanted: make(map[ID]bool, len(addOn.Objects)),
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
	p.removals(&out, addOn.Whole && p.wanted.Whole && len(addOn.Objects) > 0)
	return out
}

func (p *planner) deselected(name string) AddOnPlan {
	out := AddOnPlan{Name: name, Hold: maps.Clone(p.seen.Inventory[name])}
	p.removals(&out, p.wanted.Whole)
	return out
}
