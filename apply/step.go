package apply

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// outcome is what became of one step.
type outcome struct {
	action  ssa.Action
	live    Live
	failure *Failure
}

// run does one step: one request for an object that is new, changed or drifted,
// and more only where another writer has to be dealt with, once. An error says
// nothing of the object: the pass ends.
func (r requests) run(ctx context.Context, step Step, retry Retry) (outcome, error) {
	body, err := bodyFor(step.Object, step.Resource)
	if err != nil {
		return outcome{}, fmt.Errorf("%s: %w", step.ID, err)
	}
	if step.Why == FirstContact {
		return r.meet(ctx, step, body, retry)
	}
	got, err := r.apply(ctx, step.Resource, step.ID, body, true)
	return r.finish(ctx, step, body, got, err)
}

// meet applies an object that is not ours yet.
func (r requests) meet(ctx context.Context, step Step, body []byte, retry Retry) (outcome, error) {
	if retry.Failure.Reason == OwnedByOther {
		if out, err := r.lookFirst(ctx, step); out.failure != nil || err != nil {
			return out, err
		}
	}
	got, err := r.apply(ctx, step.Resource, step.ID, body, false)
	if apierrors.IsConflict(err) {
		return r.contest(ctx, step, body, err)
	}
	if tool := foreignTool(got.ManagedFields); err == nil && !got.created && tool != "" {
		return r.giveBack(ctx, step, tool)
	}
	return r.finish(ctx, step, body, got, err)
}

func (r requests) finish(ctx context.Context, step Step, body []byte, got answer, err error) (outcome, error) {
	if err == nil {
		got, err = r.takeOver(ctx, step, body, got)
	}
	if err != nil {
		return refusal(step, err)
	}
	return outcome{action: actionOf(got, step.Version), live: liveOfAnswer(&got.PartialObjectMetadata)}, nil
}

func refusal(step Step, err error) (outcome, error) {
	reason, unreachable := classify(err)
	if unreachable != nil {
		return outcome{}, unreachable
	}
	return outcome{failure: &Failure{
		ID: step.ID, File: step.Object.File, Reason: reason, Message: explain(step.ID, reason, err),
	}}, nil
}

// lookFirst reads an object that was somebody else's, and ends the step where
// it still is: applying and giving back again and again would be two writes on
// a foreign object each time.
func (r requests) lookFirst(ctx context.Context, step Step) (outcome, error) {
	object, found, err := r.get(ctx, step.Resource, step.ID)
	if err != nil {
		return refusal(step, err)
	}
	if tool := foreignTool(object.ManagedFields); found && tool != "" {
		return outcome{failure: owned(step, tool)}, nil
	}
	return outcome{}, nil
}

func owned(step Step, tool string) *Failure {
	return &Failure{
		ID: step.ID, File: step.Object.File, Reason: OwnedByOther,
		Message: tool + " manages this object: remove it there (and keep it in the cluster), or here; it is left as it was",
	}
}

// contest answers a conflict on first contact. An object that holds our fields
// is ours, whatever the inventory has lost, and so is one that we were installed
// with; but where another tool manages it too, ours are what a pass left that did
// not come to its end: forced, they would take that tool's values away.
func (r requests) contest(ctx context.Context, step Step, body []byte, conflict error) (outcome, error) {
	object, found, err := r.get(ctx, step.Resource, step.ID)
	if err != nil {
		return refusal(step, err)
	}
	held, tool := fieldsHash(object.ManagedFields) != "", foreignTool(object.ManagedFields)
	switch {
	case !found || !held && (tool != "" || !installed(object)):
		return refusal(step, conflict)
	case tool != "":
		return r.giveBack(ctx, step, tool)
	}
	got, err := r.apply(ctx, step.Resource, step.ID, body, true)
	return r.finish(ctx, step, body, got, err)
}

// giveBack takes our fields out of an object that turned out to be managed by
// another tool.
func (r requests) giveBack(ctx context.Context, step Step, tool string) (outcome, error) {
	body, err := nothingOf(step.Object, step.ID)
	if err != nil {
		return outcome{}, fmt.Errorf("%s: %w", step.ID, err)
	}
	if _, err := r.apply(ctx, step.Resource, step.ID, body, false); err != nil {
		return refusal(step, err)
	}
	return outcome{failure: owned(step, tool)}, nil
}

// takeOverTries bounds how often a take-over is begun anew because somebody else
// has written meanwhile: controllers do so right after an apply.
const takeOverTries = 5

// takeOver makes the leftovers of kubectl ours, and applies again, so that what
// Git does not want of them goes.
func (r requests) takeOver(ctx context.Context, step Step, body []byte, got answer) (answer, error) {
	object := got.PartialObjectMetadata
	for range takeOverTries {
		patches, err := takeOver(object)
		if err != nil || len(patches) == 0 {
			return got, err
		}
		err = r.patch(ctx, step.Resource, step.ID, object.ResourceVersion, patches)
		if err == nil {
			again, err := r.apply(ctx, step.Resource, step.ID, body, true)
			again.created = got.created
			return again, err
		}
		if !apierrors.IsConflict(err) {
			return answer{}, err
		}
		if object, _, err = r.get(ctx, step.Resource, step.ID); err != nil {
			return answer{}, err
		}
	}
	return got, nil // the next apply sees the leftovers again
}

// actionOf tells what an apply did to an object that was in sight at a version.
func actionOf(got answer, version uint64) ssa.Action {
	switch {
	case got.created:
		return ssa.CreatedAction
	case version != 0 && version == parseVersion(got.ResourceVersion):
		return ssa.UnchangedAction
	}
	return ssa.ConfiguredAction
}

// removed is what became of an object that is not wanted any more. Zero is: it
// is not in the cluster, or not ours any more.
type removed struct {
	sent    bool   // a delete was sent, and taken
	ending  bool   // it is being deleted
	waiting string // what its end waits for
	failure *Failure
}

// remove gets rid of one object. An error says nothing of the object: the pass
// ends.
func (r requests) remove(ctx context.Context, target Target) (removed, error) {
	out, err := r.dispose(ctx, target)
	if err == nil {
		return out, nil
	}
	reason, unreachable := classify(err)
	if unreachable != nil {
		return removed{}, unreachable
	}
	if reason != KindNotServed {
		reason = PruneFailed
	}
	return removed{failure: &Failure{ID: target.ID, Reason: reason, Message: explain(target.ID, reason, err)}}, nil
}

func (r requests) dispose(ctx context.Context, target Target) (removed, error) {
	if target.Way == Delete {
		return r.deleted(ctx, target)
	}
	object, found, err := r.get(ctx, target.Resource, target.ID)
	live := liveOfAnswer(&object)
	switch {
	case err != nil || !found || !live.Owned():
		return removed{}, err
	case target.Way == Release || live.Prune == PruneDisabled:
		return removed{}, r.patch(ctx, target.Resource, target.ID, object.ResourceVersion, letGo(object))
	case target.Way == Look || live.Prune == PruneConfirm:
		return removed{waiting: "consent to delete it"}, nil
	case live.Deleting:
		return removed{ending: true, waiting: "its deletion to finish" + finalizers(live)}, nil
	}
	target.UID = live.UID
	return r.deleted(ctx, target)
}

func (r requests) deleted(ctx context.Context, target Target) (removed, error) {
	err := r.delete(ctx, target.Resource, target.ID, target.UID)
	switch {
	case apierrors.IsNotFound(err) && !unknownPath(err):
		return removed{}, nil
	case apierrors.IsConflict(err):
		return removed{waiting: "its newest state to come into sight"}, nil
	case err != nil:
		return removed{}, err
	}
	return removed{sent: true, ending: true, waiting: "its deletion to finish"}, nil
}
