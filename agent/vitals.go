package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// vitals tell whether this process lives, and whether it can take over.
type vitals struct {
	now func() time.Time
	// patience is how long one turn of a loop may last.
	patience time.Duration

	mu   sync.Mutex
	busy map[string]time.Time
	// lacks is why it is not ready. Once it is nil it stays so: readiness says
	// that this image and configuration can do the work, not that all is well.
	lacks error
}

// patienceFor is far more than any turn takes: each has deadlines of its own.
func patienceFor(c Config) time.Duration { return 15*time.Minute + 3*c.Remote.Timeout }

func newVitals(patience time.Duration) *vitals {
	return &vitals{now: time.Now, patience: patience, busy: map[string]time.Time{}, lacks: errors.New("nothing is verified yet")}
}

// of notes the turns of a loop.
func (v *vitals) of(name string, loop reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		v.begin(name)
		defer v.end(name)
		return loop.Reconcile(ctx, request)
	})
}

// looking notes the turns of a source loop, and whether its findings are all
// that it takes to be ready.
func (v *vitals) looking(loop reconcile.Reconciler, found *board) reconcile.Reconciler {
	return v.of("source", reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		result, err := loop.Reconcile(ctx, request)
		if err == nil {
			v.take(found.read())
		}
		return result, err
	}))
}

func (v *vitals) begin(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.busy[name] = v.now()
}

func (v *vitals) end(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.busy, name)
}

func (v *vitals) take(f findings) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lacks != nil {
		v.lacks = planned(f)
	}
}

// live says which loop hangs.
func (v *vitals) live() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, since := range v.busy {
		if v.now().Sub(since) > v.patience {
			return fmt.Errorf("the %s loop hangs since %s", name, since.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// ready says what is not shown yet.
func (v *vitals) ready() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lacks
}

// planned tells whether findings show that this process can do the work: it has
// the verified revision on its own disk, and knows what that wants of this
// cluster. A cluster without an identity has nothing to plan; a newer head that
// is refused, and some add-on that does not render, are the repository's fault.
func planned(f findings) error {
	switch {
	case f.verified == nil || f.verified.Tree == "":
		return errors.Join(errors.New("no revision was fetched and verified yet"), f.contact, f.refusal)
	case f.told.identity == nil:
		return nil
	case f.targets == nil:
		return errors.Join(errors.New("what this cluster should be is not known yet"), f.selectErr)
	case len(f.targets) > 0 && !slices.ContainsFunc(f.targets, func(t target) bool { return t.err == nil }):
		return fmt.Errorf("no add-on can be rendered: %w", f.targets[0].err)
	}
	return nil
}
