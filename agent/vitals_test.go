package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/fleet"
	"github.com/fleetling/fleetling/sources/trust"
)

func TestALoopThatHangsIsNotAlive(t *testing.T) {
	now := noon
	v := newVitals(time.Minute)
	v.now = func() time.Time { return now }
	turn := func(during time.Duration) (inside error) {
		_, err := v.of("pass", reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
			now = now.Add(during)
			inside = v.live()
			return ctrl.Result{}, errors.New("a turn that fails is a turn")
		})).Reconcile(t.Context(), ctrl.Request{})
		require.Error(t, err)
		return inside
	}
	assert.NoError(t, v.live(), "before the first turn")
	assert.NoError(t, turn(time.Minute))
	assert.ErrorContains(t, turn(time.Minute+1), "the pass loop hangs since 2026-05-01T12:01:00Z")
	assert.NoError(t, v.live(), "it came to its end after all")
	now = now.Add(time.Hour)
	assert.NoError(t, v.live(), "a loop with nothing to do is alive")
}

func TestPlanned(t *testing.T) {
	verified := &trust.Verified{Tree: "t"}
	someone := told{identity: &fleet.Identity{Name: "one"}}
	bad := target{name: "bad", err: errors.New("does not render")}
	for name, c := range map[string]struct {
		found findings
		want  string
	}{
		"nothing is known at the start":                      {findings{}, "no revision was fetched"},
		"Git does not answer":                                {findings{contact: errors.New("no route")}, "no route"},
		"the head is refused, and there is no other":         {findings{refusal: errors.New("unsigned")}, "unsigned"},
		"a pin alone shows nothing of what this process can": {findings{verified: &trust.Verified{}, told: someone, targets: []target{}}, "no revision was fetched"},
		"without an identity there is nothing to plan":       {findings{verified: verified}, ""},
		"what is wanted can't be told":                       {findings{verified: verified, told: someone, selectErr: &sources.Error{Reason: sources.UnknownField, Err: errors.New("a key")}}, "a key"},
		"all is planned":                                     {findings{verified: verified, told: someone, targets: []target{aim(made("web", "1"))}}, ""},
		"a newer head is refused":                            {findings{verified: verified, refusal: errors.New("unsigned"), told: someone, targets: []target{}}, ""},
		"one add-on does not render":                         {findings{verified: verified, told: someone, targets: []target{bad, aim(made("web", "1"))}}, ""},
		"none renders":                                       {findings{verified: verified, told: someone, targets: []target{bad}}, "does not render"},
	} {
		t.Run(name, func(t *testing.T) {
			err := planned(c.found)
			if c.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestOnceReadyItStaysReady(t *testing.T) {
	v := newVitals(time.Minute)
	require.Error(t, v.ready())
	v.take(findings{contact: errors.New("no route")})
	require.ErrorContains(t, v.ready(), "no route")
	v.take(findings{verified: &trust.Verified{Tree: "t"}})
	require.NoError(t, v.ready())
	v.take(findings{contact: errors.New("no route")})
	assert.NoError(t, v.ready(), "a silent source is no reason to replace the Pod")
}

// rehearse starts a rehearsal beside the fixture's own loop.
func (f *fixture) rehearse(elected chan struct{}) (*vitals, chan error) {
	f.t.Helper()
	v := newVitals(time.Hour)
	r := newRehearsal(elected, f.loop, v)
	r.after = time.Millisecond
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(f.t.Context())
	f.t.Cleanup(cancel)
	go func() { ended <- r.Start(ctx) }()
	return v, ended
}

func TestAnAgentInWaitingShowsThatItCouldAndChangesNothing(t *testing.T) {
	f := newFixture(t)
	f.repo.Commit("first", f.key)
	v, ended := f.rehearse(make(chan struct{}))
	require.NoError(t, <-ended)
	assert.NoError(t, v.ready())
	assert.Nil(t, f.loop.board.read().verified, "its findings are nobody's")
	assert.Zero(t, f.news)
	assert.Empty(t, f.listed)
	pinned, err := f.loop.keeper.current(t.Context())
	require.NoError(t, err)
	assert.Nil(t, pinned, "nothing is written")
}

func TestAnAgentThatCannotVerifyNeverBecomesReady(t *testing.T) {
	f := newFixture(t)
	f.repo.Commit("first", nil)
	elected := make(chan struct{})
	v, ended := f.rehearse(elected)
	require.Eventually(t, func() bool {
		return sources.ReasonOf(v.ready()) == sources.Unsigned
	}, time.Minute, time.Millisecond)
	close(elected)
	require.NoError(t, <-ended, "who leads rehearses no more")
	assert.Error(t, v.ready())
}

func TestWhoLeadsAtOnceRehearsesNothing(t *testing.T) {
	f := newFixture(t)
	f.repo.Commit("first", f.key)
	elected := make(chan struct{})
	close(elected)
	v := newVitals(time.Hour)
	require.NoError(t, newRehearsal(elected, f.loop, v).Start(t.Context()))
	assert.ErrorContains(t, v.ready(), "nothing is verified yet")
	_, err := v.looking(f.loop, f.loop.board).Reconcile(t.Context(), ctrl.Request{})
	require.NoError(t, err)
	assert.NoError(t, v.ready(), "its source loop shows it")
}

func TestTheNameInTheLeaseIsThePods(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	name, err := holderName("node-1", first)
	require.NoError(t, err)
	again, err := holderName("node-1", first)
	require.NoError(t, err)
	assert.Equal(t, name, again, "a restarted container")
	other, err := holderName("node-1", second)
	require.NoError(t, err)
	assert.NotEqual(t, name, other, "two Pods on the network of one node")
	_, err = holderName("node-1", first+"/none")
	assert.Error(t, err)
}
