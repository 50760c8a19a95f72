package agent

import (
	"context"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// rehearsal shows that an agent that waits for the Lease could do the work: it
// fetches, verifies, selects and renders as the source loop would, and throws
// the result away. It ends when it has succeeded, or when this agent leads.
type rehearsal struct {
	// elected is closed when this agent leads.
	elected <-chan struct{}
	// source has a board and a keeper of its own, so that nothing that was read
	// while another agent wrote comes to the passes of this one.
	source *sourceLoop
	vitals *vitals
	// after is how long the Lease may take before it counts as another's.
	after time.Duration
}

// newRehearsal is for a source loop, whose turns exclude those of the rehearsal:
// they share the clone.
func newRehearsal(elected <-chan struct{}, source *sourceLoop, v *vitals) *rehearsal {
	dry := *source
	dry.board, dry.posted, dry.listed = &board{}, func() {}, nil
	dry.keeper = source.keeper.another()
	return &rehearsal{elected, &dry, v, 3 * retryPeriod}
}

// Start rehearses until it has succeeded.
func (r *rehearsal) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() {
		select {
		case <-r.elected:
			cancel()
		case <-ctx.Done():
		}
	})
	look := r.vitals.looking(r.source, r.source.board)
	for wait := r.after; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		r.source.keeper.forget()
		result, err := look.Reconcile(ctx, ctrl.Request{})
		if r.vitals.ready() == nil {
			return nil
		}
		wait = result.RequeueAfter
		if err != nil {
			wait = r.source.pace.next(true)
		}
	}
}

// NeedLeaderElection is no: it is for who waits.
func (*rehearsal) NeedLeaderElection() bool { return false }
