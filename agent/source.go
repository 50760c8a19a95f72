package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/agent/desired"
	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/fleet"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/trust"
)

// sourceLoop reads identity and repository and posts its findings. It writes
// nothing to the cluster.
type sourceLoop struct {
	config   Config
	pipeline *desired.Pipeline
	keeper   *keeper
	board    *board
	members  client.Reader
	metrics  *metrics
	pace     pace
	// posted wakes the pass loop.
	posted func()
	// listed takes what the fleet file says of the ClusterSet, where it is not
	// nil.
	listed func(f fleet.Fleet, cluster string)
	// identity gives the ConfigMap of the identity, or nil, and nodes the name that
	// Cluster API has given this cluster, or "".
	identity func() *corev1.ConfigMap
	nodes    func(context.Context) (string, error)
	rest     *atRest
	// turn is held while the pipeline is in use.
	turn *sync.Mutex
}

// Reconcile looks once.
func (s *sourceLoop) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	asked, err := s.asked(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	last := s.board.read()
	var next findings
	switch pinned, err := s.keeper.current(ctx); {
	case sources.ReasonOf(err) != "":
		next = findings{selectErr: err} // all that is kept is another cluster's
	case err != nil:
		return ctrl.Result{}, err
	default:
		next = s.look(ctx, last, pinned, time.Now())
	}
	if err := ctx.Err(); err != nil {
		return ctrl.Result{}, err // stopped half-way: what was found then says nothing
	}
	next.handled = asked
	s.board.post(next)
	if s.listed != nil && next.fleet != nil && next.told.identity != nil {
		s.listed(*next.fleet, next.told.identity.Name)
	}
	news := !next.sameNews(last)
	if news {
		logNews(log.FromContext(ctx), last, next)
		s.posted()
	}
	s.rest.looked(news)
	return ctrl.Result{RequeueAfter: s.pace.next(next.contact != nil)}, nil
}

// asked reads the annotation reconcile-at. A Member that is not there asks for
// nothing.
func (s *sourceLoop) asked(ctx context.Context) (string, error) {
	var member v1alpha1.Member
	if err := s.members.Get(ctx, client.ObjectKey{Name: v1alpha1.Self}, &member); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return member.Annotations[v1alpha1.ReconcileAtAnnotation], nil
}

// look takes the three steps. Each keeps what was known before where it can't
// tell anything new.
func (s *sourceLoop) look(ctx context.Context, last findings, pinned *pin, now time.Time) findings {
	next := last
	next.told = s.who(ctx, lastIdentity(last, pinned))
	s.fetch(ctx, &next, pinned, now)
	s.verify(ctx, &next, pinned, now)
	s.want(ctx, &next, last, pinned)
	return next
}

func (s *sourceLoop) who(ctx context.Context, last *fleet.Identity) told {
	found, err := identityOf(s.identity(), s.config.Identity)
	name, nodesErr := s.nodes(ctx)
	if nodesErr != nil {
		log.FromContext(ctx).Info("the name of this cluster was not compared with its nodes'", "error", nodesErr.Error())
	}
	return tell(found, err, last, name)
}

func lastIdentity(last findings, pinned *pin) *fleet.Identity {
	switch {
	case last.told.identity != nil && !last.told.nameOnly:
		return last.told.identity
	case pinned != nil:
		return pinned.Identity
	}
	return nil
}

func (s *sourceLoop) fetch(ctx context.Context, next *findings, pinned *pin, now time.Time) {
	if next.lastContact.IsZero() {
		next.lastContact = now
	}
	have := ""
	switch {
	case next.verified != nil:
		have = next.verified.Commit
	case pinned != nil:
		have = pinned.Commit
	}
	var result git.Result
	err := s.metrics.timed("fetch", func() (err error) {
		result, err = s.pipeline.Fetch(ctx, have)
		return err
	})
	next.contact = err
	if err == nil {
		next.head, next.lastContact = result.Head, now
	}
	next.stale = now.Sub(next.lastContact) > s.config.StaleAfter
}

// verify judges the head against the newest verified one. After a start that is
// the pin, which is looked at first: it stands while a newer head is refused or
// Git is away, so that a changed identity can be answered from the disk.
func (s *sourceLoop) verify(ctx context.Context, next *findings, pinned *pin, now time.Time) {
	if pinned != nil && (next.verified == nil || next.verified.Tree == "") {
		s.stand(ctx, next, pinned, now)
	}
	known := pinned != nil && next.verified.Commit == next.head && next.refusal == nil
	if next.head == "" || known {
		return
	}
	var verified trust.Verified
	err := s.metrics.timed("verify", func() (err error) {
		verified, err = s.pipeline.Verify(ctx, base(next.verified, pinned), next.head, now)
		return err
	})
	switch {
	case err == nil:
		next.verified, next.refusal = &verified, nil
	case sources.ReasonOf(err) != "":
		next.refusal = err
	case next.contact == nil:
		next.contact = err
	}
}

// stand takes the pin for verified. Its tree is known once the clone has it; its
// key may have been revoked since.
func (s *sourceLoop) stand(ctx context.Context, next *findings, pinned *pin, now time.Time) {
	verified, err := s.pipeline.Verify(ctx, &pinned.Pin, pinned.Commit, now)
	if err != nil {
		verified = trust.Verified{Pin: pinned.Pin}
		if sources.ReasonOf(err) != "" {
			next.refusal = err
		}
	}
	if verified.Signer.Name == "" {
		verified.Signer = pinned.Signer
	}
	next.verified = &verified
}

// base is the pin to go by. Without one in the cluster it is none: somebody
// deleted it, to have the agent introduced again.
func base(verified *trust.Verified, pinned *pin) *trust.Pin {
	switch {
	case pinned == nil:
		return nil
	case verified != nil:
		return &verified.Pin
	}
	return &pinned.Pin
}

// want asks what the verified revision wants of this cluster, when revision or
// identity are not those of the last answer.
func (s *sourceLoop) want(ctx context.Context, next *findings, last findings, pinned *pin) {
	answered := (last.selection != nil || last.selectErr != nil) && sameQuestion(last, *next)
	switch {
	case next.verified == nil || next.told.identity == nil:
		next.selectErr, next.targets = next.told.err, nil
	case next.told.differs != nil:
		next.selectErr, next.targets = next.told.differs, nil
	case next.verified.Tree == "":
		s.remember(ctx, next, pinned)
	case !answered:
		s.ask(ctx, next, pinned)
	}
}

func (s *sourceLoop) ask(ctx context.Context, next *findings, pinned *pin) {
	var wanted desired.Wanted
	err := s.metrics.timed("render", func() (err error) {
		wanted, err = s.wanted(ctx, *next, listed(*next, pinned))
		return err
	})
	debug.FreeOSMemory() // rendering is rare and takes far more than all that follows
	if wanted.Fleet != nil {
		next.fleet = wanted.Fleet
	}
	if err == nil && len(wanted.AddOns) == 0 && holdsSomething(*next, pinned) {
		err = errNothingSelected(wanted.Selection.Cluster)
	}
	switch {
	case err == nil:
		// A copy: a pointer into wanted would keep all that was rendered.
		next.selection, next.selectErr = new(wanted.Selection), nil
		next.targets = targetsOf(next.verified.Commit, wanted)
	case sources.ReasonOf(err) != "":
		next.selectErr, next.targets = err, nil
	case next.contact == nil:
		next.contact = err
	}
}

// wanted asks for a cluster of which the name alone is known only what its entry
// says: without one it would get what is for clusters without labels.
func (s *sourceLoop) wanted(ctx context.Context, f findings, listed bool) (desired.Wanted, error) {
	id := *f.told.identity
	if f.told.nameOnly {
		read, err := s.pipeline.Fleet(ctx, *f.verified)
		switch {
		case err != nil:
			return desired.Wanted{}, err
		case !slices.ContainsFunc(read.Clusters, func(c fleet.Cluster) bool { return c.Name == id.Name }):
			return desired.Wanted{}, fmt.Errorf("the repository has no entry for cluster %s: %w", id.Name, f.told.err)
		}
		id.ClusterSet = read.ClusterSet
	}
	return s.pipeline.Want(ctx, *f.verified, id, listed)
}

// remember answers from pin and snapshot what the pinned revision wants of this
// cluster, while it is not on disk: Git is away, or serves another history.
func (s *sourceLoop) remember(ctx context.Context, next *findings, pinned *pin) {
	if pinned == nil || !pinned.Whole || pinned.Commit != next.verified.Commit || !reflect.DeepEqual(pinned.Identity, next.told.identity) {
		return // not known: what is rolled out stays
	}
	contents, err := s.keeper.restore(ctx)
	if err != nil || len(contents) == 0 {
		return
	}
	next.selection, next.selectErr = pinned.Selection, nil
	next.targets = make([]target, 0, len(contents))
	for _, c := range contents {
		c.Revision = pinned.Commit
		next.targets = append(next.targets, target{name: c.Name, path: c.Path, dependsOn: c.DependsOn, content: c})
	}
}

func sameQuestion(last, next findings) bool {
	return last.verified != nil && last.verified.Tree == next.verified.Tree && last.verified.Commit == next.verified.Commit && reflect.DeepEqual(last.told.identity, next.told.identity) &&
		last.told.nameOnly == next.told.nameOnly && (last.told.differs == nil) == (next.told.differs == nil)
}

// listed tells whether the repository ever had an entry for this cluster.
func listed(f findings, pinned *pin) bool {
	return (pinned != nil && pinned.Listed) || (f.selection != nil && f.selection.Listed)
}

func holdsSomething(f findings, pinned *pin) bool {
	return len(f.targets) > 0 || (pinned != nil && pinned.Snapshot != "")
}

// errNothingSelected holds what is applied where no add-on is selected any more:
// that is a label gone wrong more often than a wish.
func errNothingSelected(cluster string) error {
	return &sources.Error{
		Reason: sources.EmptySelector, File: "fleetling.yaml",
		Err: fmt.Errorf("no add-on is for cluster %s any more: mend its labels or a selector; to remove all add-ons, leave one that holds what has to stay", cluster),
	}
}

// targetsOf takes what is wanted over the edge of apply. The result is never
// nil: nothing selected is something else than not known.
func targetsOf(revision string, wanted desired.Wanted) []target {
	targets := make([]target, 0, len(wanted.AddOns))
	for _, addOn := range wanted.AddOns {
		t := target{name: addOn.Name, path: addOn.Path, dependsOn: addOn.DependsOn, err: addOn.Err, warnings: addOn.Warnings}
		if addOn.Err == nil {
			t.content = newContent(revision, addOn)
		}
		targets = append(targets, t)
	}
	return targets
}

// pace is when to look again: the interval with 10 % jitter, and after a
// failure sooner at first, then later.
type pace struct {
	interval time.Duration
	retry    *backoff.ExponentialBackOff
}

func newPace(interval time.Duration) pace {
	return pace{interval, backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(time.Second),
		backoff.WithMaxInterval(max(interval, 5*time.Minute)),
		backoff.WithMaxElapsedTime(0))}
}

func (p pace) next(failed bool) time.Duration {
	if failed {
		return p.retry.NextBackOff()
	}
	p.retry.Reset()
	tenth := p.interval / 10
	return p.interval - tenth + rand.N(2*tenth+1)
}
