package apply

import (
	"context"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/object"
	"github.com/fluxcd/pkg/ssa"
	"golang.org/x/sync/errgroup"
)

// parallel is how many requests are under way at once.
const parallel = 8

// progress is what a pass did for one add-on.
type progress struct {
	entries  []ssa.ChangeSetEntry
	applied  []ID
	repaired []ID
	gone     []ID
	failures []Failure
	refused  int
	waiting  []Waiting
	// removing are deletions that were sent, or wait for their turn.
	removing []Waiting
	// outdated tells that the API server did not know a kind that it had told of,
	// blind that something ends without a watch that would say so.
	outdated, blind bool
}

// outdated tells that the kinds have changed since they were discovered.
func outdated(done map[string]*progress) bool {
	for _, p := range done {
		if p.outdated {
			return true
		}
	}
	return false
}

// complete tells that all that the add-on wants is applied.
func (p *progress) complete() bool { return len(p.failures)+len(p.waiting) == 0 }

// execute does what the plan says: add-ons in order, stages in order, the
// objects of a stage at once; then the removals, the other way round. After an
// error the progress up to it counts.
func (e *Engine) execute(ctx context.Context, plan Plan) (map[string]*progress, error) {
	done := map[string]*progress{}
	closed := map[string]bool{} // namespaces that could not be applied
	for _, addOn := range plan.AddOns {
		p := &progress{failures: slices.Clone(addOn.Failures), waiting: slices.Clone(addOn.Waiting)}
		done[addOn.Name] = p
		for stage, steps := range addOn.Steps {
			if err := e.stage(ctx, p, p.ready(Stage(stage), steps, closed)); err != nil {
				return done, err
			}
			p.close(closed, e.memory.inventory)
		}
	}
	for _, addOn := range slices.Backward(plan.AddOns) {
		if err := e.remove(ctx, done[addOn.Name], addOn.Removal); err != nil {
			return done, err
		}
	}
	return done, nil
}

// ready takes out the steps that have to wait: what guards others and is new, and
// the agent itself, until all else of its add-on is there, and what lives in a
// namespace that could not be made.
func (p *progress) ready(stage Stage, steps []Step, closed map[string]bool) []Step {
	blocked := stage >= Guards && !p.complete()
	var ready []Step
	for _, step := range steps {
		switch {
		case blocked && !step.Why.repairs():
			p.waiting = append(p.waiting, Waiting{step.ID, "the rest of its add-on to be applied"})
		case closed[step.ID.Namespace]:
			p.waiting = append(p.waiting, Waiting{step.ID, "Namespace/" + step.ID.Namespace + " to be applied"})
		default:
			ready = append(ready, step)
		}
	}
	return ready
}

// close notes the namespaces that could not be made. One that was applied
// before, or that is another's, is there.
func (p *progress) close(closed map[string]bool, inventory Inventory) {
	for _, failure := range p.failures {
		if failure.ID.GroupKind().String() == kindNamespace && failure.Reason != OwnedByOther && !inventory.Holds(failure.ID) {
			closed[failure.ID.Name] = true
		}
	}
}

func (e *Engine) stage(ctx context.Context, p *progress, steps []Step) error {
	outcomes, err := atOnce(ctx, steps, func(ctx context.Context, step Step) (outcome, error) {
		return e.requests.run(ctx, step, e.memory.retries[step.ID])
	})
	for i, step := range steps {
		if outcomes[i] != nil {
			e.take(p, step, *outcomes[i])
		}
	}
	return err
}

// take folds one outcome into the pass and into memory.
func (e *Engine) take(p *progress, step Step, out outcome) {
	if out.failure != nil {
		p.refuse(*out.failure)
		e.memory.refuse(step.ID, step.Object.Digest, *out.failure, e.now())
		return
	}
	e.memory.accept(step.ID, step.Object.Digest, out.live, e.now())
	e.watcher.view.observe(step.ID, out.live)
	p.applied = append(p.applied, step.ID)
	p.entries = append(p.entries, entry(step.ID, step.Object.GVK.GroupVersion().String(), out.action))
	if out.action != ssa.UnchangedAction && step.Why.repairs() {
		p.repaired = append(p.repaired, step.ID)
	}
}

// refuse takes a failure that this pass has asked for.
func (p *progress) refuse(failure Failure) {
	p.failures = append(p.failures, failure)
	p.refused++
	p.outdated = p.outdated || failure.Reason == KindNotServed
}

// remove lets go of and deletes what an add-on does not want any more, once all
// that it wants is applied.
func (e *Engine) remove(ctx context.Context, p *progress, removal Removal) error {
	p.gone = append(p.gone, removal.Gone...)
	p.removing = append(p.removing, removal.Pending...)
	if !p.complete() {
		for _, target := range removal.Now {
			p.removing = append(p.removing, Waiting{target.ID, "its add-on to be applied without a failure"})
		}
		return nil
	}
	p.failures = append(p.failures, removal.Failures...)
	outcomes, err := atOnce(ctx, removal.Now, e.requests.remove)
	for i, target := range removal.Now {
		if outcomes[i] != nil {
			e.takeRemoved(p, target, *outcomes[i])
		}
	}
	return err
}

func (e *Engine) takeRemoved(p *progress, target Target, out removed) {
	if out.sent {
		p.entries = append(p.entries, entry(target.ID, target.Resource.GroupVersion().String(), ssa.DeletedAction))
		e.watcher.view.ending(target.ID, target.UID)
	}
	p.blind = p.blind || (out.ending && target.Way == Check)
	switch {
	case out.failure != nil:
		p.refuse(*out.failure)
		e.memory.refuse(target.ID, "", *out.failure, e.now())
	case out.waiting != "":
		p.removing = append(p.removing, Waiting{target.ID, out.waiting})
	default:
		e.watcher.view.forget(target.ID)
		p.gone = append(p.gone, target.ID)
	}
}

// atOnce does something for each item, several at once. A nil result was not
// reached; the first error ends the others.
func atOnce[T, R any](ctx context.Context, items []T, do func(context.Context, T) (R, error)) ([]*R, error) {
	results := make([]*R, len(items))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, item := range items {
		group.Go(func() error {
			result, err := do(ctx, item)
			if err == nil {
				results[i] = &result
			}
			return err
		})
	}
	return results, group.Wait()
}

func entry(id ID, groupVersion string, action ssa.Action) ssa.ChangeSetEntry {
	meta := object.ObjMetadata{Namespace: id.Namespace, Name: id.Name, GroupKind: id.GroupKind()}
	return ssa.ChangeSetEntry{ObjMetadata: meta, GroupVersion: groupVersion, Subject: id.String(), Action: action}
}
