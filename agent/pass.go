package agent

import (
	"context"
	"maps"
	"reflect"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fleetling/fleetling/apply"
	"github.com/fleetling/fleetling/discovery/record"
	"github.com/fleetling/fleetling/sources"
)

// passLoop makes the cluster what the findings say, and says what it found.
type passLoop struct {
	keeper  *keeper
	board   *board
	engine  *apply.Engine
	status  *statusWriter
	metrics *metrics
	// told takes how this cluster is doing, for the other members.
	told func(record.Status)
	// kept is what it remembers from one pass to the next.
	kept passMemory
}

type passMemory struct {
	restored bool
	active   []content
	// since is when a content of an add-on began to count, by add-on.
	since    map[string]started
	seen     map[string]standing
	revision string
	// paused is what the condition Paused says while it holds.
	paused string
}

type started struct {
	digest string
	at     time.Time
}

// Reconcile makes one pass.
func (p *passLoop) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	found := p.board.read()
	paused, err := p.readPause(ctx, time.Now())
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := p.restore(ctx); err != nil {
		return ctrl.Result{}, err
	}
	plan := rollOut(p.kept.active, found.targets, p.kept.seen)
	if err := p.metrics.timed("keep", func() error { return p.keep(ctx, found, plan) }); err != nil {
		return ctrl.Result{}, err
	}
	pass := p.engine.Look
	if !paused.holds() {
		p.begin(found, plan, time.Now())
		pass = p.engine.Pass
	}
	var report apply.Report
	err = p.metrics.timed("apply", func() (err error) {
		report, err = pass(ctx, plan.wanted)
		return err
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	view := outcome{
		found: found, rollout: plan, report: report, since: p.kept.since, pause: paused,
		snapshot: p.keeper.snapshotProblem(), connection: p.board.connected(), now: time.Now(),
	}
	if err := p.metrics.timed("report", func() error { return p.status.write(ctx, view) }); err != nil {
		return ctrl.Result{}, err
	}
	before := p.kept.seen
	p.kept.seen = view.standings()
	p.over(view)
	p.told(view.status())
	if len(plan.blocked) > 0 && !maps.Equal(before, p.kept.seen) {
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	}
	return ctrl.Result{RequeueAfter: soonest(report.Again, view.untilTimeout(), paused.left(view.now))}, nil
}

// restore takes what was rolled out from the snapshot, once: it is repaired
// until the source loop knows better, and for as long as Git is away.
func (p *passLoop) restore(ctx context.Context) error {
	if p.kept.restored {
		return nil
	}
	active, err := p.keeper.restore(ctx)
	if sources.ReasonOf(err) != "" {
		p.kept.active = nil // it is another cluster's: the source loop says so
		return nil
	}
	if err != nil {
		return err
	}
	p.kept.active, p.kept.restored = active, true
	return nil
}

// keep writes pin and snapshot before anything of a revision is applied.
func (p *passLoop) keep(ctx context.Context, found findings, plan rollout) error {
	p.kept.active = plan.active
	if found.verified == nil {
		return nil
	}
	next := pin{Pin: found.verified.Pin, Signer: found.verified.Signer, Identity: found.told.identity}
	if found.told.nameOnly {
		next.Identity = nil
	}
	current, err := p.keeper.current(ctx)
	if err != nil {
		return err
	}
	if current != nil {
		next.Listed = current.Listed
		if current.Commit == next.Commit && reflect.DeepEqual(current.Identity, next.Identity) {
			next.Selection, next.Whole = current.Selection, current.Whole
		}
	}
	if found.selection != nil {
		next.Listed = next.Listed || found.selection.Listed
	}
	if found.targets != nil {
		next.Selection, next.Whole = found.selection, plan.wanted.Whole && len(plan.blocked) == 0
	}
	return p.keeper.keep(ctx, next, plan.active)
}

// begin notes what begins to count with this pass.
func (p *passLoop) begin(found findings, plan rollout, now time.Time) {
	since := map[string]started{}
	for _, c := range plan.active {
		s := p.kept.since[c.Name]
		if s.digest != c.Digest {
			s = started{c.Digest, now}
		}
		since[c.Name] = s
	}
	p.kept.since = since
	if found.verified != nil && found.verified.Commit != p.kept.revision {
		p.kept.revision = found.verified.Commit
		p.engine.RetryNow()
	}
}

// soonest is the shortest wait that is not zero.
func soonest(waits ...time.Duration) time.Duration {
	var shortest time.Duration
	for _, wait := range waits {
		if wait > 0 && (shortest == 0 || wait < shortest) {
			shortest = wait
		}
	}
	return shortest
}
