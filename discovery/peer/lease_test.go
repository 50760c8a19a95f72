package peer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/peer"
)

func TestAPeerIsFreshThenLateThenItsEndpointsAreNotReady(t *testing.T) {
	w, _ := honest(t)
	assert.Empty(t, w.polls(175*time.Second))
	assert.Equal(t, peer.Fresh, w.view("east").State)

	assert.Equal(t, []peer.Reason{peer.BecameLate}, reasons(w.round()))
	assert.Equal(t, peer.Late, w.view("east").State)
	assert.False(t, w.Of(cart)[0].Late, "in the grace time")
	assert.Empty(t, w.polls(25*time.Second))

	out := w.round()
	assert.Equal(t, []peer.Reason{peer.EndpointsLate}, reasons(out))
	assert.Equal(t, []peer.Service{cart}, out.Changed)
	assert.True(t, w.Of(cart)[0].Late)
	assert.Len(t, w.Of(cart)[0].Slices[0].Endpoints, 2, "kept, B28")
	assert.Empty(t, w.polls(time.Hour), "for ever: it is not withdrawn by silence")
}

func TestARenewalKeepsAPeerFresh(t *testing.T) {
	w, east := honest(t)
	for range 10 {
		assert.Empty(t, w.polls(time.Minute))
		require.Empty(t, w.take(east, east.next()).Events)
	}
	assert.Equal(t, peer.Fresh, w.view("east").State)
}

func TestTheSameRecordShownAgainIsNoRenewal(t *testing.T) {
	w, east := honest(t)
	for range 3 {
		w.polls(time.Minute)
		w.take(east, east.seal())
	}
	assert.Equal(t, peer.Late, w.view("east").State)
}

func TestNotConnectedNothingChangesAndAllLeasesBeginAnewAtReconnection(t *testing.T) {
	w, _ := honest(t)
	w.polls(170 * time.Second)
	var events []peer.Reason
	for range 1000 {
		w.pass(5 * time.Second)
		out := w.Contact("", w.now)
		events = append(events, reasons(out)...)
		require.Empty(t, out.Changed)
	}
	assert.Equal(t, []peer.Reason{peer.Disconnected}, events)
	assert.False(t, w.Connected())
	assert.Equal(t, peer.Fresh, w.view("east").State)
	assert.False(t, w.Of(cart)[0].Late)

	assert.Equal(t, []peer.Reason{peer.Connected}, reasons(w.round()))
	assert.Empty(t, w.polls(175*time.Second))
	assert.Equal(t, []peer.Reason{peer.BecameLate}, w.polls(5*time.Second))
}

func TestTheCarrierShowingAnOldRecordOfOursIsNotAConnection(t *testing.T) {
	w, _ := honest(t)
	w.Published("ours, newer")
	assert.Equal(t, []peer.Reason{peer.Disconnected}, w.polls(time.Hour))
	assert.Equal(t, peer.Fresh, w.view("east").State)
}

func TestOurOwnRenewalOnItsWayIsNoDisconnection(t *testing.T) {
	w, _ := honest(t)
	for _, put := range []string{"a", "b", "c"} {
		w.polls(55 * time.Second)
		w.Published(discovery.Digest("ours " + put))
		w.pass(5 * time.Second)
		require.Empty(t, w.Contact("ours", w.now).Events, "the one before is still shown")
		w.Published("ours")
	}
	w.polls(5 * time.Second)
	assert.Equal(t, peer.Late, w.view("east").State, "leases did not begin anew")
}

func TestTheGraceTimeBeginsAnewAtReconnection(t *testing.T) {
	w, _ := honest(t)
	require.Equal(t, []peer.Reason{peer.BecameLate}, w.polls(180*time.Second))
	w.polls(25 * time.Second)
	w.pass(time.Hour)
	assert.Equal(t, []peer.Reason{peer.Connected}, reasons(w.Contact("ours", w.now)), "a gap between rounds that nobody noticed")
	assert.Empty(t, w.polls(25*time.Second))
	assert.Equal(t, []peer.Reason{peer.EndpointsLate}, w.polls(5*time.Second))
}

func TestALatePeerComesBackWithItsSecondRecord(t *testing.T) {
	w, east := honest(t)
	w.polls(5 * time.Minute)
	require.True(t, w.view("east").Late)

	assert.Empty(t, w.take(east, east.next()).Changed)
	assert.True(t, w.view("east").Late, "one record is not enough")
	w.polls(10 * time.Second)
	w.take(east, east.next())
	assert.True(t, w.view("east").Late, "nor is a second one right after")
	w.polls(20 * time.Second)
	out := w.take(east, east.next())
	assert.Equal(t, []peer.Reason{peer.BecameFresh}, reasons(out))
	assert.Equal(t, []peer.Service{cart}, out.Changed)
	assert.Equal(t, peer.Fresh, w.view("east").State)
	assert.False(t, w.Of(cart)[0].Late)
}

func TestTheFirstRecordOfALatePeerStopsTheGraceTime(t *testing.T) {
	w, east := honest(t)
	w.polls(190 * time.Second)
	require.Equal(t, peer.Late, w.view("east").State)
	w.take(east, east.next())
	assert.Empty(t, w.polls(2*time.Minute))
	assert.False(t, w.view("east").Late)
	assert.Equal(t, peer.Late, w.view("east").State)
	w.polls(time.Minute)
	assert.Equal(t, []peer.Reason{peer.EndpointsLate}, w.polls(30*time.Second), "then a lease and a grace time of silence")
}

func TestARestartDoesNotMakeADeadPeersEndpointsReady(t *testing.T) {
	w, east := honest(t)
	before := w.Revision()
	w.polls(5 * time.Minute)
	require.True(t, w.view("east").Late)
	assert.NotEqual(t, before, w.Revision(), "it has to be written")

	w = w.restart()
	w.Contact("ours", w.now)
	assert.Equal(t, []peer.Reason{peer.BecameLate}, reasons(w.take(east, east.seal())))
	assert.True(t, w.Of(cart)[0].Late)
	w.take(east, east.next())
	assert.True(t, w.Of(cart)[0].Late)
	w.polls(time.Minute)
	w.take(east, east.next())
	assert.False(t, w.Of(cart)[0].Late)
	w = w.restart()
	w.take(east, east.seal())
	assert.Equal(t, peer.Fresh, w.view("east").State)
}

func TestATombstoneWithdrawsAtOnceAlsoWhenNotConnected(t *testing.T) {
	w, east := honest(t)
	w.pass(time.Hour)
	w.Contact("", w.now)
	exports := east.says.Exports
	east.says.Withdrawn, east.says.Exports = true, nil
	out := w.take(east, east.next())
	assert.Equal(t, []peer.Reason{peer.BecameWithdrawn}, reasons(out))
	assert.Equal(t, []peer.Service{cart}, out.Changed)
	assert.Empty(t, w.Of(cart))
	assert.True(t, w.Settled("east", cart))
	w.Contact("ours", w.now)
	assert.Empty(t, w.polls(time.Hour), "who has left is not late")

	east.says.Withdrawn, east.says.Exports = false, exports
	assert.Equal(t, []peer.Reason{peer.BecameFresh}, reasons(w.take(east, east.next())))
	assert.Len(t, w.Of(cart), 1)
}

func TestAnExportThatIsGoneFromTheRecordGoesAtOnce(t *testing.T) {
	w, east := honest(t)
	east.says.Exports = nil
	out := w.take(east, east.next())
	assert.Equal(t, []peer.Service{cart}, out.Changed)
	assert.Empty(t, w.Of(cart))
	assert.True(t, w.Settled("east", cart))
	assert.Empty(t, w.Services())
}

func TestAWipedRegistryIsNotAWithdrawal(t *testing.T) {
	w, _ := honest(t)
	// No head of east, and ours is there: east is late in the end, and stays.
	w.polls(24 * time.Hour)
	assert.Len(t, w.Of(cart), 1)
	assert.Equal(t, peer.Late, w.view("east").State)
}

func TestALeaseIsNeitherShorterThanOursNorMuchLonger(t *testing.T) {
	for name, tc := range map[string]struct {
		seconds int
		want    time.Duration
	}{
		"one second":    {1, 180 * time.Second},
		"five minutes":  {300, 300 * time.Second},
		"a day is lied": {86400, 720 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w, east := honest(t)
			east.says.LeaseSeconds = tc.seconds
			w.take(east, east.next())
			assert.Empty(t, w.polls(tc.want-5*time.Second))
			assert.Equal(t, []peer.Reason{peer.BecameLate}, w.polls(5*time.Second))
		})
	}
}
