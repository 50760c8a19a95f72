package sharing_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/discovery/peer"
)

// Where all tests are run, the parallel ones of cases_test.go run meanwhile, between
// the other two clusters.
func TestLongAMemberIsCutOffFromTheRegistryPastItsLease(t *testing.T) {
	long(t)
	t.Parallel()
	all := sides(t, "ap", "eu", "us")
	ap, eu, us := all[0], all[1], all[2]
	others := []*side{eu, us}
	for _, s := range []*side{ap, eu} {
		s.backend("pair", 1, nil)
		s.export("pair")
	}
	ap.backend("single", 1, nil)
	ap.export("single")
	eu.backend("far", 1, nil)
	eu.export("far")
	eu.request()
	for _, s := range all {
		s.has("pair", "ap", 1)
		s.has("pair", "eu", 1)
		s.has("single", "ap", 1)
		s.has("far", "eu", 1)
	}
	imports := append(ap.identities("far"), ap.identities("pair")...)

	cut(t, ap)
	ap.scale("single", 2)
	ap.has("single", "ap", 2)
	require.NoError(t, ap.Condition(t.Context(), v1alpha1.Connected, "Unreachable"))
	require.NoError(t, ap.Agent.Restart(true))
	ap.scale("single", 3)
	ap.has("single", "ap", 3)
	assert.Equal(t, imports, append(ap.identities("far"), ap.identities("pair")...), "nothing on disk, nobody to ask: nothing changes")

	for _, s := range others {
		s.losesPatienceWith("ap", "pair")
		s.has("pair", "ap", 0)
		s.has("pair", "eu", 1)
		s.has("single", "ap", 1) // the last ones stay, and what became of them since can't be known
		s.warned("ap", string(peer.EndpointsLate))
	}
	eu.prints("from ap", connect(eu.name("single")))
	// As much time has passed at the other end.
	ap.has("pair", "ap", 1)
	ap.has("pair", "eu", 1)
	ap.has("far", "eu", 1)
	assert.Equal(t, imports, append(ap.identities("far"), ap.identities("pair")...))
	for _, name := range []string{"eu", "us"} {
		assert.NotEqual(t, string(peer.Late), ap.peer(name).Status.State)
	}

	heal(t, ap)
	for _, s := range others {
		s.has("single", "ap", 3)
		s.peerIs("ap", v1alpha1.Fresh, metav1.ConditionTrue, "Fresh")
		s.has("pair", "ap", 1)
	}
	require.NoError(t, ap.Condition(t.Context(), v1alpha1.Connected, "Connected"))
	assert.Equal(t, imports, append(ap.identities("far"), ap.identities("pair")...))
	eu.unexport("far")
	ap.notImported("far")
}

func TestAllAreCutOffFromTheRegistryForAWhile(t *testing.T) {
	allCutOff(t, func(*testing.T, func() bool) {})
}

func TestLongAllAreCutOffFromTheRegistryPastTheLease(t *testing.T) {
	long(t)
	git := peer.GitTiming()
	allCutOff(t, func(t *testing.T, changed func() bool) {
		t.Helper()
		assert.Never(t, changed, git.Failover()+git.Poll, time.Second)
	})
}

// allCutOff holds the partition, and at least until all have noticed it.
func allCutOff(t *testing.T, hold func(t *testing.T, changed func() bool)) {
	t.Helper()
	all := sides(t, "ap", "eu", "us")
	for _, s := range all {
		s.backend("catalog", 1, nil)
		s.export("catalog")
	}
	reach := func(replicas int) {
		for _, s := range all {
			for _, from := range names {
				s.has("catalog", from, replicas)
			}
		}
	}
	reach(1)
	before := catalogs(all)

	cut(t, all...)
	for _, s := range all {
		s.scale("catalog", 2)
		s.has("catalog", s.cluster.Name(), 2)
	}
	for _, s := range all {
		s.disconnects()
	}
	hold(t, func() bool { return !othersStand(all) })
	assert.True(t, othersStand(all), "own endpoints follow, the others' stay")
	assert.Equal(t, before, catalogs(all))

	heal(t, all...)
	reach(2)
	for _, s := range all {
		require.NoError(t, s.Condition(t.Context(), v1alpha1.Connected, "Connected"))
	}
	assert.Equal(t, before, catalogs(all))
}

func catalogs(all []*side) (identities [][]types.UID) {
	for _, s := range all {
		identities = append(identities, s.identities("catalog"))
	}
	return identities
}

// othersStand is that each has one endpoint of each of the others.
func othersStand(all []*side) bool {
	for _, s := range all {
		for _, from := range names {
			ready, _, err := s.endpoints(s.Context(), "catalog", from)
			if from != s.cluster.Name() && (err != nil || len(ready) != 1) {
				return false
			}
		}
	}
	return true
}

// disconnects waits until a member says that it is not connected, whyever.
func (s *side) disconnects() {
	s.Helper()
	s.eventually(func(ctx context.Context) error {
		self, err := s.Self(ctx)
		if err == nil && !meta.IsStatusConditionFalse(self.Status.Conditions, v1alpha1.Connected) {
			err = fmt.Errorf("%+v", self.Status.Conditions)
		}
		return err
	})
}

func TestAClusterThatIsGoneForGoodIsTakenOffTheList(t *testing.T) {
	all := sides(t, "ap", "eu", "us")
	us, others := all[2], all[:2]
	for _, s := range []*side{all[0], us} {
		s.handmade("catalog", tcp("http", 80))
		s.export("catalog")
	}
	us.handmade("lost", tcp("http", 80))
	us.export("lost")
	for _, s := range others {
		s.has("catalog", "us", 1)
		s.has("lost", "us", 1)
	}
	t.Cleanup(us.startAgent)
	us.Agent.Kill9()
	require.NoError(t, w.set.Network.Isolate(t.Context(), us.cluster.Site))
	rejoin := func() { assert.NoError(t, w.set.Network.Rejoin(context.WithoutCancel(t.Context()), us.cluster.Site)) }
	t.Cleanup(rejoin)

	undo := amendFleet(t, func() { w.fleet.Remove("clusters/us.yaml") }, others...)
	for _, s := range others {
		s.imported("catalog", "ap")
		s.has("catalog", "ap", 1)
		s.noSlices("catalog", "us")
		s.notImported("lost")
		s.nothingDerived("lost")
		s.eventually(func(ctx context.Context) error {
			err := s.Client.Get(ctx, client.ObjectKey{Name: "us"}, &v1alpha1.Peer{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("peer us is still there: %w", err)
		})
	}

	rejoin()
	us.startAgent()
	undo()
	for _, s := range others {
		s.imported("catalog", "ap", "us")
		s.has("lost", "us", 1)
	}
	us.imported("catalog", "ap", "us")
}

func TestALossyLinkToTheRegistryIsSlowAndNoMore(t *testing.T) {
	all := sides(t, "ap", "eu")
	ap, eu := all[0], all[1]
	t.Cleanup(func() { heal(t, ap) })
	require.NoError(t, ap.cluster.Site.To(w.set.Hub).Loss(t.Context(), 30))
	for _, s := range all {
		s.handmade("from-"+s.cluster.Name(), tcp("http", 80))
		s.export("from-" + s.cluster.Name())
	}
	ap.has("from-eu", "eu", 1)
	eu.has("from-ap", "ap", 1)
	ap.says("from-ap", v1beta1.ServiceExportConditionReady, metav1.ConditionTrue, string(v1beta1.ServiceExportReasonExported))
	eu.unexport("from-eu")
	ap.notImported("from-eu")
	ap.unexport("from-ap")
	eu.notImported("from-ap")
}

// long is for what takes minutes, the time of a lease: see test-long in the Makefile.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("FLEETLING_LONG") == "" {
		t.Skip("takes the time of a lease: FLEETLING_LONG=1 runs it")
	}
}

// losesPatienceWith waits until a peer's endpoints are taken for not ready, which
// takes longer than other waits do, and never comes before its lease is over.
func (s *side) losesPatienceWith(name, service string) {
	s.Helper()
	step := func(ctx context.Context) error {
		ready, _, err := s.endpoints(ctx, service, name)
		if err != nil {
			return err
		}
		fresh := meta.FindStatusCondition(s.peer(name).Status.Conditions, v1alpha1.Fresh)
		require.NotNil(s.T, fresh)
		if len(ready) == 0 {
			require.NotEqual(s.T, metav1.ConditionTrue, fresh.Status, "not ready in its lease")
		}
		if fresh.Reason != string(peer.EndpointsLate) {
			return fmt.Errorf("peer %s is %+v", name, fresh)
		}
		return nil
	}
	if s.Eventually(s.Context(), step) != nil {
		s.eventually(step)
	}
}

// cut cuts clusters off from the hub, and from nothing else, until heal or the end
// of the test.
func cut(t *testing.T, sides ...*side) {
	t.Helper()
	t.Cleanup(func() { heal(t, sides...) })
	for _, s := range sides {
		require.NoError(t, s.cluster.Site.To(w.set.Hub).Cut(t.Context()))
	}
}

func heal(t *testing.T, sides ...*side) {
	t.Helper()
	for _, s := range sides {
		assert.NoError(t, s.cluster.Site.To(w.set.Hub).Heal(context.WithoutCancel(t.Context())))
	}
}

// amendFleet commits a change to the fleet repository, and waits until these
// members follow it; none is all. undo, or the end of the test, commits what was
// there before.
func amendFleet(t *testing.T, edit func(), followers ...*side) (undo func()) {
	t.Helper()
	before := w.fleet.Head()
	commit := func(ctx context.Context, message string) {
		w.revision = w.fleet.Push(message)
		for _, m := range w.members {
			if len(followers) == 0 || slices.ContainsFunc(followers, func(s *side) bool { return s.Member == m }) {
				assert.NoError(t, m.Ready(ctx, w.revision))
			}
		}
	}
	edit()
	undo = sync.OnceFunc(func() {
		w.fleet.Git("checkout", before, "--", ".")
		followers = nil
		commit(context.WithoutCancel(t.Context()), "as it was")
	})
	t.Cleanup(undo)
	commit(t.Context(), t.Name())
	return undo
}
