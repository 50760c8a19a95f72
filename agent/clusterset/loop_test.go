package clusterset

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/carriertest"
	"github.com/fleetling/fleetling/discovery/mcs"
	"github.com/fleetling/fleetling/discovery/peer"
	"github.com/fleetling/fleetling/discovery/record"
)

// registry is a carrier in memory that all members of a test share.
type registry struct {
	mu  sync.Mutex
	own map[string]discovery.Own
}

func (r *registry) member(name string) *carriertest.Hostile {
	return carriertest.NewHostile(side{r, name})
}

type side struct {
	*registry
	name string
}

func (s side) Put(_ context.Context, own discovery.Own) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own[s.name] = own
	return nil
}

func (s side) Heads(context.Context) ([]discovery.Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var heads []discovery.Head
	for name, own := range s.own {
		head := discovery.Head{Member: name, Record: discovery.DigestOf(own.Record)}
		if own.Status != nil {
			head.Status = discovery.DigestOf(own.Status)
		}
		heads = append(heads, head)
	}
	slices.SortFunc(heads, func(a, b discovery.Head) int { return strings.Compare(a.Member, b.Member) })
	return heads, nil
}

func (s side) Get(_ context.Context, member string, digest discovery.Digest) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.own[member]
	for _, data := range [][]byte{own.Record, own.Status} {
		if data != nil && discovery.DigestOf(data) == digest {
			return data, nil
		}
	}
	if part, ok := own.Parts[digest]; ok {
		return part, nil
	}
	return nil, discovery.ErrNotFound
}

type open struct{ discovery.Carrier }

func (open) Close() error { return nil }

// member is a loop with what surrounds it.
type member struct {
	*Loop
	t       *testing.T
	hostile *carriertest.Hostile
	shares  []mcs.Share
	woken   map[types.NamespacedName]int
	kept    Kept
	saves   int
	saving  error // what keeping fails with
	ranging error // what reading the own ranges fails with
	reports []Report
	ctx     context.Context //nolint:containedctx // whether the loop was told to end
	cancel  context.CancelFunc
	group   *errgroup.Group
}

var catalog = types.NamespacedName{Namespace: "shop", Name: "catalog"}

func share(address string) mcs.Share {
	return mcs.Share{
		Cluster: "east",
		Export: record.Export{
			Namespace: "shop", Name: "catalog", Created: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), Type: "ClusterSetIP",
			Ports: []record.Port{{Name: "http", Protocol: "TCP", Port: 80}}, IPFamilies: []string{"IPv4"},
		},
		Slices: []record.Slice{{
			AddressType: "IPv4", Ports: []record.SlicePort{{Name: "http", Protocol: "TCP", Port: 8080}},
			Endpoints: []record.Endpoint{{Address: address, Ready: true, Serving: true}},
		}},
	}
}

// world is two members, east and west, in one registry.
type world struct {
	t    *testing.T
	reg  *registry
	list List
	keys map[string]record.Key
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, reg: &registry{own: map[string]discovery.Own{}}, keys: map[string]record.Key{}}
	w.list = List{ClusterSet: "prod", Registry: &Registry{Git: "https://git.example.com/registry.git"}}
	for i, name := range []string{"east", "west"} {
		private, public, err := record.NewKey()
		require.NoError(t, err)
		w.keys[name], err = record.ParseKey(private)
		require.NoError(t, err)
		w.list.Entries = append(w.list.Entries, peer.Entry{
			Name: name, Keys: []string{public}, Ranges: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i + 1), 0, 0}), 16)},
		})
	}
	return w
}

func (w *world) listFor(name string) List {
	list := w.list
	list.Cluster = name
	return list
}

func (w *world) join(name string, memory peer.Memory) *member {
	w.t.Helper()
	m := w.prepare(name, memory)
	m.start()
	return m
}

func (w *world) prepare(name string, memory peer.Memory) *member {
	w.t.Helper()
	m := &member{t: w.t, hostile: w.reg.member(name), woken: map[types.NamespacedName]int{}}
	m.Loop = New(Config{
		List: w.listFor(name), Memory: memory, UID: "uid-" + name, Key: w.keys[name],
		Open:    func(Registry, string) (Carrier, error) { return open{m.hostile}, nil },
		Exports: func(context.Context) ([]mcs.Share, error) { return m.shares, nil },
		Ranges:  func(context.Context) ([]netip.Prefix, error) { return nil, m.ranging },
		Wake: func(keys ...types.NamespacedName) {
			for _, key := range keys {
				m.woken[key]++
			}
		},
		Save: func(_ context.Context, kept Kept) error {
			if m.saving == nil {
				m.kept = kept
				m.saves++
			}
			return m.saving
		},
		Report:  func(_ context.Context, r Report) error { m.reports = append(m.reports, r); return nil },
		Now:     time.Now,
		Restart: func() { m.cancel() },
	})
	m.SetNamespace("shop", true)
	return m
}

func (m *member) start() {
	ctx, cancel := context.WithCancel(m.t.Context())
	m.ctx, m.cancel, m.group = ctx, cancel, &errgroup.Group{}
	m.group.Go(func() error { return m.Start(ctx) })
}

func (m *member) stop() {
	m.cancel()
	require.NoError(m.t, m.group.Wait())
}

func (m *member) last() Report { return m.reports[len(m.reports)-1] }

func (m *member) addresses() []string {
	var all []string
	for _, s := range m.Shares(catalog) {
		for _, slice := range s.Slices {
			for _, e := range slice.Endpoints {
				all = append(all, e.Address)
			}
		}
	}
	return all
}

func after(d time.Duration) {
	<-time.After(d) // by the clock of synctest
	synctest.Wait()
}

func TestAnExportReachesTheOtherMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		east, west := w.join("east", peer.Memory{}), w.join("west", peer.Memory{})
		east.shares = []mcs.Share{share("10.1.0.7")}
		east.Changed()
		after(15 * time.Second)
		assert.Equal(t, []string{"10.1.0.7"}, west.addresses())
		assert.Positive(t, west.woken[catalog])
		assert.True(t, east.Published(catalog, east.shares[0].Export))
		assert.False(t, east.Published(catalog, record.Export{Namespace: "shop", Name: "catalog"}), "another content")
		assert.Equal(t, []string{"catalog"}, west.Names("shop"))
		assert.Equal(t, ReasonConnected, west.last().Reason)
		assert.Equal(t, map[peer.State]int{peer.Fresh: 1}, west.last().Counts)

		east.shares = nil
		east.Changed()
		after(15 * time.Second)
		assert.Empty(t, west.addresses(), "an export that ended")
		assert.True(t, west.Settled("east", catalog))
		east.stop()
		west.stop()
	})
}

func TestAnEndpointOutsideTheEntrysRangesIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		east, west := w.join("east", peer.Memory{}), w.join("west", peer.Memory{})
		liar := share("10.2.0.9")
		liar.Slices[0].Endpoints = append(liar.Slices[0].Endpoints, record.Endpoint{Address: "10.1.0.7", Ready: true})
		east.shares = []mcs.Share{liar}
		east.Changed()
		after(15 * time.Second)
		assert.Equal(t, []string{"10.1.0.7"}, west.addresses())
		east.stop()
		west.stop()
	})
}

func TestNothingIsReadBeforeTheOwnRangesAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		east := w.join("east", peer.Memory{})
		east.shares = []mcs.Share{share("10.1.0.7")}
		east.Changed()
		west := w.prepare("west", peer.Memory{})
		west.ranging = errors.New("connection refused")
		west.start()
		after(time.Minute)
		assert.Empty(t, west.addresses(), "it could be one of our own")
		assert.False(t, west.Settled("east", catalog))
		assert.Contains(t, west.last().Message, "own ranges: connection refused")
		west.ranging = nil
		after(time.Minute)
		assert.Equal(t, []string{"10.1.0.7"}, west.addresses())
		east.stop()
		west.stop()
	})
}

// doubtful is a carrier that can't read somebody's newest state.
type doubtful struct {
	open
	problems map[string]error
}

func (d doubtful) Problems() map[string]error { return d.problems }

func TestWhatACarrierCanNotReadOfAPeerIsSaidOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		east := w.join("east", peer.Memory{})
		west := w.prepare("west", peer.Memory{})
		problems := map[string]error{}
		west.config.Open = func(Registry, string) (Carrier, error) { return doubtful{open{west.hostile}, problems}, nil }
		west.start()
		after(15 * time.Second)
		west.reports = nil
		problems["east"] = errors.New("branch members/east: no such file belongs there")
		after(15 * time.Second)
		require.NotEmpty(t, west.reports)
		require.NotEmpty(t, west.reports[0].Views)
		assert.Equal(t, peer.Problem{Reason: peer.Malformed, Message: "branch members/east: no such file belongs there"}, west.reports[0].Views[0].Problem)
		assert.Equal(t, peer.Fresh, west.reports[0].Views[0].State, "the last good record counts")
		east.stop()
		west.stop()
	})
}

func TestARegistryThatIsAwayOrWipedChangesNothing(t *testing.T) {
	for name, tricks := range map[string]carriertest.Tricks{
		"away":      {Err: errors.New("connection refused")},
		"wiped":     {Wipe: true},
		"withholds": {Withhold: []string{"east", "west"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				east, west := w.join("east", peer.Memory{}), w.join("west", peer.Memory{})
				east.shares = []mcs.Share{share("10.1.0.7")}
				east.Changed()
				after(15 * time.Second)
				west.hostile.Play(tricks)
				after(time.Hour)
				assert.Equal(t, []string{"10.1.0.7"}, west.addresses())
				assert.False(t, west.Shares(catalog)[0].Late)
				assert.False(t, west.last().Connected)
				west.hostile.Play(carriertest.Tricks{})
				after(3 * time.Minute)
				assert.True(t, west.last().Connected)
				assert.Equal(t, []string{"10.1.0.7"}, west.addresses())
				east.stop()
				west.stop()
			})
		})
	}
}

func TestAnotherPolicyHasTheOwnExportsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		east := w.join("east", peer.Memory{})
		east.shares = []mcs.Share{share("10.1.0.7")}
		east.Changed()
		after(15 * time.Second)
		exported, woken := east.shares, east.woken[catalog]
		require.True(t, east.Published(catalog, exported[0].Export))

		list := w.listFor("east")
		list.Policy = peer.Policy{Rules: []peer.Rule{{Namespace: "shop"}}}
		east.shares = nil // which the importer makes of it
		east.SetList(list)
		after(time.Second)
		assert.False(t, east.Permitted("shop"))
		assert.False(t, east.Published(catalog, exported[0].Export), "long before it is renewed")
		assert.Greater(t, east.woken[catalog], woken, "the conditions of the export have to say so")

		woken = east.woken[catalog]
		east.shares = exported
		east.SetList(w.listFor("east"))
		after(time.Second)
		assert.True(t, east.Published(catalog, exported[0].Export))
		assert.Greater(t, east.woken[catalog], woken)
		east.stop()
	})
}

func TestAWipedRegistryIsFilledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		east, west := w.join("east", peer.Memory{}), w.join("west", peer.Memory{})
		after(15 * time.Second)
		clear(w.reg.own)
		after(15 * time.Second)
		assert.Len(t, w.reg.own, 2)
		east.stop()
		west.stop()
	})
}

func TestASilentPeerBecomesLateAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		east, west := w.join("east", peer.Memory{}), w.join("west", peer.Memory{})
		east.shares = []mcs.Share{share("10.1.0.7")}
		east.Changed()
		after(15 * time.Second)
		east.stop()
		after(peer.GitTiming().Failover() + peer.GitTiming().Renew)
		require.Len(t, west.Shares(catalog), 1)
		assert.True(t, west.Shares(catalog)[0].Late)
		assert.Equal(t, []string{"10.1.0.7"}, west.addresses(), "late, and still there")

		again := w.join("east", east.kept.Memory)
		again.shares = east.shares
		after(3 * time.Minute)
		assert.False(t, west.Shares(catalog)[0].Late)
		again.stop()
		west.stop()
	})
}

func TestAfterARestartNothingIsKnownUntilItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		east, west := w.join("east", peer.Memory{}), w.join("west", peer.Memory{})
		after(15 * time.Second)
		west.stop()
		again := w.join("west", west.kept.Memory)
		again.hostile.Play(carriertest.Tricks{Err: errors.New("cut off")})
		after(time.Hour)
		assert.False(t, again.Settled("east", catalog))
		again.hostile.Play(carriertest.Tricks{})
		after(time.Minute)
		assert.True(t, again.Settled("east", catalog))
		east.stop()
		again.stop()
	})
}

func TestAReplayedRecordIsRefusedAfterARestartToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		east, west := w.join("east", peer.Memory{}), w.join("west", peer.Memory{})
		east.shares = []mcs.Share{share("10.1.0.7")}
		east.Changed()
		after(15 * time.Second)
		old := w.reg.own["east"]
		east.shares = []mcs.Share{share("10.1.0.8")}
		east.Changed()
		after(15 * time.Second)
		require.Equal(t, []string{"10.1.0.8"}, west.addresses())
		east.stop()
		west.stop()
		w.reg.own["east"] = old
		again := w.join("west", west.kept.Memory)
		after(15 * time.Second)
		assert.Empty(t, again.addresses())
		assert.False(t, again.Settled("east", catalog), "what is imported stays")
		again.stop()
	})
}

func TestWithoutItsKeyInTheEntryAMemberPublishesNothingAndSaysWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.list.Entries[0].Keys = w.list.Entries[1].Keys
		east := w.join("east", peer.Memory{})
		after(15 * time.Second)
		assert.Empty(t, w.reg.own)
		assert.Equal(t, ReasonNoMemberKey, east.last().Reason)
		assert.Contains(t, east.last().Message, "status.memberKey")

		list := w.listFor("east")
		list.Entries = slices.Clone(list.Entries)
		list.Entries[0].Keys = []string{w.keys["east"].Public()}
		east.SetList(list)
		after(time.Minute)
		assert.Len(t, w.reg.own, 1)
		assert.Equal(t, ReasonConnected, east.last().Reason)
		east.stop()
	})
}

func TestAnExportThatNoRecordCanHoldIsLeftOutAndSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		east, west := w.join("east", peer.Memory{}), w.join("west", peer.Memory{})
		bad := share("10.1.0.9")
		bad.Export.Name = "bad"
		bad.Slices[0].Endpoints[0].Address = "no address"
		east.shares = []mcs.Share{bad, share("10.1.0.7")}
		east.Changed()
		after(15 * time.Second)
		assert.Equal(t, []string{"10.1.0.7"}, west.addresses())
		assert.Equal(t, ReasonNotPublished, east.last().Reason)
		assert.Contains(t, east.last().Message, "shop/bad is left out")
		east.stop()
		west.stop()
	})
}

func TestAStatusThatChangesAllTheTimeIsPutAtTheRhythmOfTheCarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		east := w.join("east", peer.Memory{})
		after(15 * time.Second)
		before := east.hostile.Puts()
		for i := range 100 {
			east.SetStatus(record.Status{AddOns: i})
			after(100 * time.Millisecond)
		}
		assert.LessOrEqual(t, east.hostile.Puts()-before, 3, "in ten seconds")
		east.SetStatus(record.Status{AddOns: 99})
		east.shares = []mcs.Share{share("10.1.0.7")}
		east.Changed()
		after(time.Second)
		assert.True(t, east.Published(catalog, east.shares[0].Export), "an export does not wait for that")
		after(10 * time.Second)
		rows, err := Look(t.Context(), w.reg.member("viewer"), w.listFor("viewer"), time.Now())
		require.NoError(t, err)
		assert.Equal(t, 99, rows[0].Status.AddOns, "the last one is there")
		east.stop()
	})
}

func TestAnotherRegistryIsAFreshStartWithTheNewList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		east := w.join("east", peer.Memory{})
		after(time.Second)
		list := w.listFor("east")
		list.Registry = &Registry{NATS: []string{"tls://nats.example.com:4222"}, Bucket: "clusterset"}
		east.saving = errors.New("connection refused")
		east.SetList(list)
		after(time.Minute)
		require.NoError(t, east.ctx.Err(), "not before the list is kept: the next run would begin with the old one")
		assert.Equal(t, "https://git.example.com/registry.git", east.kept.List.Registry.Git)

		east.saving = nil
		after(time.Minute)
		require.ErrorIs(t, east.ctx.Err(), context.Canceled)
		require.NoError(t, east.group.Wait())
		assert.Equal(t, list, east.kept.List)
		assert.Contains(t, east.kept.Memory.Entries, list.Entries[0])
	})
}

func TestAQuietMemberReportsAndKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		east, west := w.join("east", peer.Memory{}), w.join("west", peer.Memory{})
		east.shares = []mcs.Share{share("10.1.0.7")}
		east.Changed()
		after(time.Minute)
		reports, woken := len(west.reports), west.woken[catalog]
		west.kept = Kept{}
		after(4 * time.Minute) // renewals on both sides
		assert.Len(t, west.reports, reports)
		assert.Equal(t, woken, west.woken[catalog])
		assert.Empty(t, west.kept.List.Cluster, "a renewal is not kept")
		east.stop()
		west.stop()
	})
}

func TestManyChangesAreKeptTogetherAndTheLastOneToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		east, west := w.join("east", peer.Memory{}), w.join("west", peer.Memory{})
		after(15 * time.Second)
		saves := west.saves
		for i := range 60 {
			east.shares = []mcs.Share{share(fmt.Sprintf("10.1.0.%d", i+1))}
			east.Changed()
			after(5 * time.Second)
		}
		after(15 * time.Second)
		assert.Equal(t, []string{"10.1.0.60"}, west.addresses())
		assert.LessOrEqual(t, west.saves-saves, 33, "60 changes in 5 minutes")
		assert.Equal(t, west.peers.Memory().Marks, west.kept.Memory.Marks)
		east.stop()
		west.stop()
	})
}

func TestTheStatusOfAllIsSeenFromAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		east := w.join("east", peer.Memory{})
		east.shares = []mcs.Share{share("10.1.0.7")}
		east.SetStatus(record.Status{Revision: "0123456789abcdef0123456789abcdef01234567", Ready: true, Reason: "Ready", AddOns: 3})
		after(15 * time.Second)
		rows, err := Look(t.Context(), w.reg.member("viewer"), w.listFor("viewer"), time.Now())
		require.NoError(t, err)
		require.Len(t, rows, 2)
		require.NotNil(t, rows[0].Status, rows[0].Problem)
		assert.True(t, rows[0].Status.Ready)
		assert.Equal(t, 3, rows[0].Status.AddOns)
		assert.Equal(t, []string{"shop/catalog"}, rows[0].Exports)
		assert.Contains(t, rows[1].Problem, "nothing in the registry")
		east.stop()
		after(10 * time.Minute)
		rows, err = Look(t.Context(), w.reg.member("viewer"), w.listFor("viewer"), time.Now())
		require.NoError(t, err)
		assert.True(t, rows[0].Late)
	})
}
