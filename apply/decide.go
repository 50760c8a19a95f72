package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object decides about one wanted object.
func (p *planner) object(out *AddOnPlan, o Object) {
	id := p.seen.Kinds.Identify(o)
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
	live, present := p.live(id)
	if live.Deleting {
		out.Waiting = append(out.Waiting, Waiting{id, "the old one to be gone" + finalizers(live)})
		return
	}
	why := p.why(out, id, o, live, present)
	if why == "" {
		return
	}
	if retry, ok := p.seen.Retries[id]; ok && retry.Digest == o.Digest && p.seen.Now.Before(retry.Next) {
		out.Failures = append(out.Failures, retry.Failure)
		return
	}
	if _, noted := out.Hold[id]; !noted {
		out.Hold[id] = Holding(p.held(out, id)) // held by the add-on that it moves from
	}
	stage := stageOf(id, p.params)
	out.Steps[stage] = append(out.Steps[stage], Step{ID: id, Object: o, Resource: resource, Stage: stage, Why: why, Version: live.Version})
}

// servable tells whether an object can be sent at all.
func (p *planner) servable(id ID, o Object) (Resource, *Failure, string) {
	fail := func(reason Reason, format string, args ...any) (Resource, *Failure, string) {
		return Resource{}, &Failure{ID: id, File: o.File, Reason: reason, Message: fmt.Sprintf(format, args...)}, ""
	}
	if rivals := p.rivals[id]; rivals != nil {
		return fail(DuplicateObject, "it is in %s: keep it in one of them", places(rivals))
	}
	resource, err := p.seen.Kinds.Resource(o.GVK)
	switch {
	case errors.Is(err, ErrNotServed):
		p.plan.Unserved = true
		if p.seen.Kinds.defines(o.GVK) {
			return Resource{}, nil, "its CustomResourceDefinition to be established"
		}
		return fail(KindNotServed, "%v: add its CustomResourceDefinition, or mend apiVersion and kind", err)
	case err != nil:
		p.plan.Unserved = true
		return Resource{}, nil, err.Error()
	case resource.Namespaced && id.Namespace == "":
		return fail(InvalidObject, "metadata.namespace is missing: set it in the file or in the kustomization")
	}
	if p.seen.Unborn && id.GroupKind() == (schema.GroupKind{Kind: kindService}) {
		return Resource{}, nil, "Service/default/kubernetes to be there: it must get its address first"
	}
	if ns, _ := p.live(ID{Kind: kindNamespace, Name: id.Namespace}); id.Namespace != "" && ns.Deleting {
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
func (p *planner) why(out *AddOnPlan, id ID, o Object, live Live, present bool) Why {
	if !p.held(out, id) {
		return FirstContact
	}
	applied, remembered := p.seen.Applied[id]
	switch {
	case !present && p.seen.Synced[id.GroupKind()]:
		return Missing
	case !remembered || applied.Digest != o.Digest:
		return Changed
	case present && (live.UID != applied.UID || live.Fields != applied.Fields):
		return Drifted
	case !applied.Verify.IsZero() && !p.seen.Now.Before(applied.Verify):
		return Unverified
	}
	return ""
}

func finalizers(live Live) string {
	if len(live.Finalizers) == 0 {
		return ""
	}
	return " (finalizers: " + strings.Join(live.Finalizers, ", ") + ")"
}

// moves keeps an object in the old add-on's inventory until the one that wants
// it has it in its own: it is never in none, whatever a crash has left.
func (p *planner) moves() {
	for i := range p.plan.AddOns {
		a := &p.plan.AddOns[i]
		a.Moved = slices.DeleteFunc(a.Moved, func(id ID) bool {
			return !slices.ContainsFunc(p.plan.AddOns, func(b AddOnPlan) bool {
				_, holds := b.Hold[id]
				return holds && b.Wanted[id]
			})
		})
	}
}

// strays finds objects that carry our label and our fields, and that nobody
// accounts for.
func (p *planner) strays() {
	for id, live := range p.seen.Live {
		if !live.Owned() || p.wants(id) || p.claims[id] {
			continue
		}
		if !slices.ContainsFunc(p.plan.AddOns, func(a AddOnPlan) bool { _, ok := a.Hold[id]; return ok }) {
			p.plan.Strays = append(p.plan.Strays, id)
		}
	}
	slices.SortFunc(p.plan.Strays, ID.Compare)
}
