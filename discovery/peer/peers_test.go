package peer_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/peer"
	"github.com/fleetling/fleetling/discovery/record"
)

var begin = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

var cart = peer.Service{Namespace: "shop", Name: "cart"}

func ranges(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func newKey(tb testing.TB) record.Key {
	tb.Helper()
	private, _, err := record.NewKey()
	require.NoError(tb, err)
	key, err := record.ParseKey(private)
	require.NoError(tb, err)
	return key
}

// cluster is another member, honest or not.
type cluster struct {
	tb    testing.TB
	key   record.Key
	says  record.Record
	parts map[discovery.Digest][]byte
}

func newCluster(tb testing.TB, name string) *cluster {
	tb.Helper()
	return &cluster{tb: tb, key: newKey(tb), parts: map[discovery.Digest][]byte{}, says: record.Record{
		Schema: 1, ClusterSet: "prod", Cluster: name, ClusterUID: "uid-" + name, Issued: begin, LeaseSeconds: 180,
	}}
}

func (c *cluster) entry(ranges ...netip.Prefix) peer.Entry {
	return peer.Entry{Name: c.says.Cluster, Keys: []string{c.key.Public()}, Ranges: ranges}
}

// exports replaces the export by one with an endpoint at each address.
func (c *cluster) exports(service peer.Service, addresses ...string) {
	c.tb.Helper()
	slice := record.Slice{AddressType: "IPv4"}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, record.Endpoint{Address: address, Ready: true})
	}
	part, err := slice.Encode()
	require.NoError(c.tb, err)
	c.parts[discovery.DigestOf(part)] = part
	var others []record.Export
	for _, export := range c.says.Exports {
		if export.Namespace != service.Namespace || export.Name != service.Name {
			others = append(others, export)
		}
	}
	c.says.Exports = append(others, record.Export{
		Namespace: service.Namespace, Name: service.Name, Created: begin, Type: "ClusterSetIP",
		Parts: []discovery.Digest{discovery.DigestOf(part)},
	})
}

// seal gives what the cluster says, without a new number.
func (c *cluster) seal() []byte {
	c.tb.Helper()
	payload, err := c.says.Encode()
	require.NoError(c.tb, err)
	return c.sign(payload)
}

func (c *cluster) sign(payload []byte) []byte {
	c.tb.Helper()
	sealed, err := record.Seal(record.KindRecord, payload, c.key)
	require.NoError(c.tb, err)
	return sealed
}

func (c *cluster) next() []byte {
	c.tb.Helper()
	c.says.Sequence++
	return c.seal()
}

// world is this cluster, a carrier and a clock.
type world struct {
	*peer.Peers
	t   testing.TB
	now time.Time
}

func self() peer.Self { return peer.Self{ClusterSet: "prod", Name: "here", UID: "uid-here"} }

func newWorld(tb testing.TB, entries ...peer.Entry) *world {
	tb.Helper()
	w := &world{Peers: peer.New(self(), peer.GitTiming(), peer.Memory{}), t: tb, now: begin}
	w.SetList(append(entries, peer.Entry{Name: "here", Ranges: ranges("10.0.0.0/16")}), nil)
	w.SetRanges(ranges("10.0.0.0/16", "10.96.0.0/12", "192.168.1.0/24"))
	w.Follow("shop")
	w.Published("ours")
	w.Contact("ours", w.now)
	return w
}

// restart is a new agent with the memory of the one before, as JSON.
func (w *world) restart() *world {
	w.t.Helper()
	data, err := json.Marshal(w.Memory())
	require.NoError(w.t, err)
	var memory peer.Memory
	require.NoError(w.t, json.Unmarshal(data, &memory))
	next := &world{Peers: peer.New(self(), peer.GitTiming(), memory), t: w.t, now: w.now}
	next.Follow("shop")
	next.Published("ours")
	return next
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

// round is a poll after five seconds, in which our own record is read back.
func (w *world) round() peer.Outcome {
	w.pass(5 * time.Second)
	return w.Contact("ours", w.now)
}

// polls are rounds every five seconds for d; it gives the reasons of all events.
func (w *world) polls(d time.Duration) []peer.Reason {
	var all []peer.Reason
	for range d / (5 * time.Second) {
		all = append(all, reasons(w.round())...)
	}
	return all
}

// take takes a record with all parts that are wanted.
func (w *world) take(c *cluster, sealed []byte) peer.Outcome {
	w.t.Helper()
	out := w.Take(c.says.Cluster, sealed, w.now)
	for _, digest := range w.Parts(c.says.Cluster) {
		got := w.TakePart(c.says.Cluster, digest, c.parts[digest])
		out.Changed = append(out.Changed, got.Changed...)
	}
	return out
}

func (w *world) view(name string) peer.View {
	w.t.Helper()
	view, ok := w.View(name)
	require.True(w.t, ok)
	return view
}

func reasons(out peer.Outcome) []peer.Reason {
	var all []peer.Reason
	for _, event := range out.Events {
		all = append(all, event.Reason)
	}
	return all
}

func addresses(shares []peer.Share) map[string][]string {
	found := map[string][]string{}
	for _, share := range shares {
		found[share.Cluster] = []string{}
		for _, slice := range share.Slices {
			for _, endpoint := range slice.Endpoints {
				found[share.Cluster] = append(found[share.Cluster], endpoint.Address)
			}
		}
	}
	return found
}

// honest is a world in which east shares the cart.
func honest(t *testing.T) (*world, *cluster) {
	t.Helper()
	east := newCluster(t, "east")
	east.exports(cart, "10.1.0.1", "10.1.0.2")
	w := newWorld(t, east.entry(ranges("10.1.0.0/16")...))
	out := w.take(east, east.next())
	require.Zero(t, out.Problem)
	require.Equal(t, []peer.Service{cart}, out.Changed)
	return w, east
}

func TestWhatAPeerExportsIsShared(t *testing.T) {
	w, east := honest(t)
	shares := w.Of(cart)
	require.Len(t, shares, 1)
	assert.Empty(t, cmp.Diff(peer.Share{
		Cluster: "east", Issued: begin, Export: east.says.Exports[0],
		Slices: []record.Slice{{AddressType: "IPv4", Endpoints: []record.Endpoint{{Address: "10.1.0.1", Ready: true}, {Address: "10.1.0.2", Ready: true}}}},
	}, shares[0], cmpopts.EquateEmpty()), "-want +got")
	assert.Empty(t, cmp.Diff(peer.View{Name: "east", State: peer.Fresh, Exports: 1, Imported: 1}, w.view("east")), "-want +got")
	assert.Equal(t, []peer.Service{cart}, w.Services())
	assert.Equal(t, []string{"east"}, w.Names())
}

func TestARecordIsRefusedWithItsReasonAndTheLastGoodOneStays(t *testing.T) {
	stranger := newKey(t)
	for name, tc := range map[string]struct {
		lie  func(east *cluster) []byte
		want peer.Reason
	}{
		"signed by nobody": {func(*cluster) []byte { return []byte("{}") }, peer.Malformed},
		"signed by another key": {func(east *cluster) []byte {
			east.key = stranger
			return east.next()
		}, peer.UnknownKey},
		"changed after it was signed": {func(east *cluster) []byte { return append(east.next(), ' ') }, peer.BadSignature},
		"a status instead of a record": {func(east *cluster) []byte {
			sealed, err := record.Seal(record.KindStatus, []byte("{}"), east.key)
			require.NoError(t, err)
			return sealed
		}, peer.BadSignature},
		"too large":         {func(*cluster) []byte { return make([]byte, record.MaxSealed+1) }, peer.TooLarge},
		"of another schema": {func(east *cluster) []byte { return east.sign([]byte(`{"schema":2}`)) }, peer.UnknownSchema},
		"signed and broken": {func(east *cluster) []byte { return east.sign([]byte(`{"schema":1}`)) }, peer.Malformed},
		"with 501 exports": {func(east *cluster) []byte {
			all := make([]struct{}, 501)
			data, err := json.Marshal(map[string]any{"schema": 1, "clusterSet": "prod", "cluster": "east", "clusterUID": "uid-east", "sequence": 9, "issued": begin, "leaseSeconds": 1, "exports": all})
			require.NoError(t, err)
			return east.sign(data)
		}, peer.TooLarge},
		"for another ClusterSet": {func(east *cluster) []byte {
			east.says.ClusterSet = "test"
			return east.next()
		}, peer.WrongClusterSet},
		"of another member's name, with a key of its own (forging west)": {func(east *cluster) []byte {
			east.says.Cluster = "west"
			sealed := east.next()
			east.says.Cluster = "east"
			return sealed
		}, peer.WrongName},
		"older than the last one": {func(east *cluster) []byte {
			east.says.Sequence -= 2
			east.says.Exports = nil
			return east.seal()
		}, peer.Replayed},
		"another one with the same number": {func(east *cluster) []byte {
			east.says.Exports = nil
			return east.seal()
		}, peer.Equivocation},
		"of another cluster with the same name": {func(east *cluster) []byte {
			east.says.ClusterUID, east.says.Exports = "uid-twin", nil
			return east.next()
		}, peer.DuplicateIdentity},
	} {
		t.Run(name, func(t *testing.T) {
			w, east := honest(t)
			require.Zero(t, w.take(east, east.next()).Problem)
			require.Zero(t, w.take(east, east.next()).Problem)
			before, memory := w.Of(cart), w.Memory()

			sealed := tc.lie(east)
			out := w.take(east, sealed)
			assert.Equal(t, tc.want, out.Problem.Reason)
			assert.Contains(t, out.Problem.Message, "east")
			assert.Equal(t, []peer.Reason{tc.want}, reasons(out))
			assert.Empty(t, out.Changed)
			assert.Equal(t, out.Problem, w.view("east").Problem)
			assert.Empty(t, cmp.Diff(before, w.Of(cart)), "-want +got")
			assert.Empty(t, cmp.Diff(memory, w.Memory(), cmpopts.EquateComparable(netip.Prefix{})), "-want +got")

			assert.Empty(t, w.take(east, sealed).Events, "told once")
		})
	}
}

func TestAMemberThatIsNotListedOrHasNoKeyIsIgnored(t *testing.T) {
	east, west := newCluster(t, "east"), newCluster(t, "west")
	w := newWorld(t, peer.Entry{Name: "east", Ranges: ranges("10.1.0.0/16")})
	head := func(name string) discovery.Head { return discovery.Head{Member: name, Record: "sha256:1"} }
	assert.False(t, w.Wants(head("west")))
	assert.False(t, w.Wants(head("east")))
	assert.Equal(t, peer.UnknownMember, w.Take("west", west.next(), w.now).Problem.Reason)
	assert.Equal(t, peer.NoKeys, w.Take("east", east.next(), w.now).Problem.Reason)
	assert.Equal(t, peer.NoKeys, w.view("east").Problem.Reason)
	assert.False(t, w.Wants(head("here")), "our own")
}

func TestOnlyNewRecordsAreWanted(t *testing.T) {
	w, east := honest(t)
	head := func(sealed []byte) discovery.Head {
		return discovery.Head{Member: "east", Record: discovery.DigestOf(sealed)}
	}
	taken := east.seal()
	assert.False(t, w.Wants(head(taken)), "taken")
	assert.False(t, w.Wants(discovery.Head{Member: "east"}), "none")
	renewal := east.next()
	assert.True(t, w.Wants(head(renewal)))

	broken := append(east.next(), ' ')
	require.True(t, w.Wants(head(broken)))
	w.take(east, broken)
	assert.False(t, w.Wants(head(broken)), "refused once")
	w.SetList([]peer.Entry{{Name: "here"}, {Name: "east", Keys: []string{east.key.Public(), newKey(t).Public()}}}, nil)
	assert.True(t, w.Wants(head(broken)), "other keys may open it")

	good := east.next()
	out := w.take(east, good)
	require.Zero(t, out.Problem)
	assert.False(t, w.Wants(head(good)))
}

func TestAGoodRecordEndsAProblem(t *testing.T) {
	w, east := honest(t)
	w.take(east, append(east.next(), ' '))
	out := w.take(east, east.next())
	assert.Equal(t, []peer.Reason{peer.ProblemResolved}, reasons(out))
	assert.Zero(t, w.view("east").Problem)
}

func TestTheMemoryIsToBeWrittenWhenContentChangesAndNotForARenewal(t *testing.T) {
	w, east := honest(t)
	before := w.Revision()
	w.take(east, east.next())
	assert.Equal(t, before, w.Revision(), "a renewal")
	east.exports(cart, "10.1.0.3")
	w.take(east, east.next())
	assert.NotEqual(t, before, w.Revision(), "a change")
	before = w.Revision()
	w.SetList([]peer.Entry{east.entry(ranges("10.1.0.0/16")...), {Name: "here", Ranges: ranges("10.0.0.0/16")}}, nil)
	assert.Equal(t, before, w.Revision(), "the same list")
	w.SetList([]peer.Entry{east.entry(ranges("10.1.0.0/17")...), {Name: "here"}}, nil)
	assert.NotEqual(t, before, w.Revision(), "another list")
}

func TestARestartTakesTheSameRecordAgainAndNoOlderOne(t *testing.T) {
	w, east := honest(t)
	old := east.seal()
	newest := east.next()
	require.Zero(t, w.take(east, newest).Problem)

	w = w.restart()
	assert.Equal(t, peer.Replayed, w.take(east, old).Problem.Reason)
	assert.Equal(t, peer.Unknown, w.view("east").State)
	east.says.Exports = nil
	assert.Equal(t, peer.Equivocation, w.take(east, east.seal()).Problem.Reason)
	assert.False(t, w.Settled("east", cart), "what is here stays")
	assert.Zero(t, w.Take("east", newest, w.now).Problem)
	assert.False(t, w.Settled("east", cart), "its parts are still missing")
	for _, digest := range w.Parts("east") {
		w.TakePart("east", digest, east.parts[digest])
	}
	assert.True(t, w.Settled("east", cart))
	assert.True(t, w.Settled("east", peer.Service{Namespace: "shop", Name: "gone"}))
	assert.Len(t, w.Of(cart), 1)
}

func TestBeforeAListIsKnownNothingIsSettled(t *testing.T) {
	p := peer.New(self(), peer.GitTiming(), peer.Memory{})
	assert.False(t, p.Settled("east", cart))
	p.SetList([]peer.Entry{{Name: "here"}}, nil)
	assert.False(t, p.Settled("east", cart), "nobody has said yet that its namespace is here")
	p.Follow(cart.Namespace)
	assert.True(t, p.Settled("east", cart))
}

func TestAfterARotationTheLastRecordOfTheOldKeyDoesNotComeBack(t *testing.T) {
	w, east := honest(t)
	last, oldKey := east.seal(), east.key.Public()
	east.key = newKey(t)
	both := peer.Entry{Name: "east", Keys: []string{oldKey, east.key.Public()}, Ranges: ranges("10.1.0.0/16")}
	w.SetList([]peer.Entry{both, {Name: "here"}}, nil)
	east.exports(cart, "10.1.0.9")
	require.Zero(t, w.take(east, east.next()).Problem)
	for _, agent := range []*world{w, w.restart()} {
		assert.Equal(t, peer.Replayed, agent.take(east, last).Problem.Reason)
	}
	assert.Equal(t, map[string][]string{"east": {"10.1.0.9"}}, addresses(w.Of(cart)))
	w.SetList([]peer.Entry{east.entry(ranges("10.1.0.0/16")...), {Name: "here"}}, nil)
	assert.Len(t, w.Of(cart), 1, "the old key goes, what the new one signed stays")
}

func TestAKeyThatIsRemovedTakesWithItWhatItSigned(t *testing.T) {
	w, east := honest(t)
	sealed := east.seal()
	thief := east.key
	east.key = newKey(t)
	out := w.SetList([]peer.Entry{east.entry(ranges("10.1.0.0/16")...), {Name: "here"}}, nil)
	assert.Contains(t, reasons(out), peer.KeyRemoved)
	assert.Equal(t, []peer.Service{cart}, out.Changed)
	assert.Empty(t, w.Of(cart))
	assert.True(t, w.Settled("east", cart), "it is a withdrawal")
	assert.Equal(t, peer.UnknownKey, w.take(east, sealed).Problem.Reason)
	require.Zero(t, w.take(east, east.next()).Problem)
	assert.Len(t, w.Of(cart), 1)

	mark, kept := w.Memory().Marks[thief.Fingerprint()]
	assert.True(t, kept)
	assert.EqualValues(t, 1, mark.Sequence)
}

func TestANewcomerWithAPeersNameIsTakenWhenTheLeaseIsOver(t *testing.T) {
	w, east := honest(t)
	east.says.ClusterUID = "uid-rebuilt"
	sealed := east.next()
	head := discovery.Head{Member: "east", Record: discovery.DigestOf(sealed)}
	w.pass(179 * time.Second)
	require.Equal(t, peer.DuplicateIdentity, w.take(east, sealed).Problem.Reason)
	assert.True(t, w.Wants(head), "it is looked at again")
	w.pass(time.Second)
	assert.Zero(t, w.take(east, sealed).Problem)
}

func TestOwnNameUsedByAnotherClusterStopsUsFromPublishing(t *testing.T) {
	us := newCluster(t, "here")
	us.says.Sequence = 41
	w := newWorld(t, us.entry(ranges("10.0.0.0/16")...))
	own := us.entry(ranges("10.0.0.0/16")...)
	w.SetList([]peer.Entry{own}, nil)

	sequence, found := w.TakeOwn(us.next(), w.now)
	assert.EqualValues(t, 42, sequence, "our own, from before a restart")
	assert.Zero(t, found)

	us.says.ClusterUID = "uid-twin"
	twin := us.next()
	sequence, found = w.TakeOwn(twin, w.now)
	assert.EqualValues(t, 43, sequence)
	assert.Equal(t, peer.DuplicateIdentity, found.Reason)
	w.pass(100 * time.Second)
	_, found = w.TakeOwn(us.next(), w.now)
	assert.Equal(t, peer.DuplicateIdentity, found.Reason)
	w.pass(179 * time.Second)
	_, found = w.TakeOwn(us.seal(), w.now)
	assert.Equal(t, peer.DuplicateIdentity, found.Reason, "it has renewed")
	w.pass(time.Second)
	_, found = w.TakeOwn(us.seal(), w.now)
	assert.Zero(t, found, "it has been silent for a lease")
	_, found = w.TakeOwn(twin, w.now)
	assert.Zero(t, found, "an old record shown again doesn't stop us")

	us.key = newKey(t)
	sequence, found = w.TakeOwn(us.next(), w.now)
	assert.Zero(t, sequence)
	assert.Zero(t, found, "what our keys have not signed is nobody's")
}

func TestOwnRecordIsKnownBeforeOurKeyIsInTheEntry(t *testing.T) {
	us := newCluster(t, "here")
	me := self()
	me.Key = us.key.Public()
	p := peer.New(me, peer.GitTiming(), peer.Memory{})
	sequence, _ := p.TakeOwn(us.next(), begin)
	assert.EqualValues(t, 1, sequence)
}

func TestFailoverTimesAreThoseThatAreDocumented(t *testing.T) {
	assert.Equal(t, "3m45s 30s", fmt.Sprint(peer.GitTiming().Failover(), " ", peer.GitTiming().Return()))
	assert.Equal(t, "46s 5s", fmt.Sprint(peer.NATSTiming().Failover(), " ", peer.NATSTiming().Return()))
}
