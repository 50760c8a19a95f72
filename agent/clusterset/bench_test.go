package clusterset

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/mcs"
	"github.com/fleetling/fleetling/discovery/peer"
	"github.com/fleetling/fleetling/discovery/record"
)

// What each member of a crowd exports: in so many namespaces, of which one (5 %)
// exists at the reader.
const (
	exportsEach   = 50
	endpointsEach = 10
	namespaces    = 20
	here          = "team-00"
	reader        = "reader"
	// memoryBar is what a thousand members may take, in bytes.
	memoryBar = 256 << 20
)

// crowd is a registry of many members in memory, with one reader. It counts the
// bytes that it gives.
type crowd struct {
	members []*speaker
	byName  map[string]*speaker
	own     discovery.Own
	ownHead discovery.Head
	list    List
	key     record.Key
	given   int
}

// speaker is a member that only says something.
type speaker struct {
	head   discovery.Head
	key    record.Key
	record record.Record
	own    discovery.Own
}

var (
	_ discovery.Carrier = (*crowd)(nil)
	_ discovery.Watcher = telling{}
)

// began is when all of it is.
func began() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

// newCrowd makes n members and the reader; registry says with which rhythm.
func newCrowd(tb testing.TB, n int, registry Registry) *crowd {
	tb.Helper()
	c := &crowd{byName: map[string]*speaker{}, list: List{ClusterSet: "prod", Cluster: reader, Registry: &registry}}
	for i := range n {
		name := fmt.Sprintf("c%04d", i)
		prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i / 256), byte(i % 256), 0}), 24)
		s := &speaker{head: discovery.Head{Member: name}, own: discovery.Own{Parts: map[discovery.Digest][]byte{}}}
		s.key = c.enter(tb, name, prefix)
		s.record = record.Record{Schema: record.Schema, ClusterSet: "prod", Cluster: name, ClusterUID: "uid-" + name, Issued: began()}
		s.record.LeaseSeconds = int(c.list.timing().Lease / time.Second)
		for j := range exportsEach {
			s.record.Exports = append(s.record.Exports, record.Export{
				Namespace: fmt.Sprintf("team-%02d", j*namespaces/exportsEach), Name: fmt.Sprintf("service-%02d", j), Type: "ClusterSetIP",
				Created: began().Add(-time.Hour), IPFamilies: []string{"IPv4"},
				Ports: []record.Port{{Name: "http", Protocol: "TCP", Port: 80}, {Name: "metrics", Protocol: "TCP", Port: 9090}},
			})
			s.endpoints(tb, j, j)
		}
		s.speak(tb)
		c.members, c.byName[name] = append(c.members, s), s
	}
	c.key = c.enter(tb, reader, netip.MustParsePrefix("11.0.0.0/24"))
	c.ownHead.Member = reader
	return c
}

// enter adds an entry to the cluster list.
func (c *crowd) enter(tb testing.TB, name string, ranges netip.Prefix) record.Key {
	tb.Helper()
	private, public, err := record.NewKey()
	require.NoError(tb, err)
	key, err := record.ParseKey(private)
	require.NoError(tb, err)
	c.list.Entries = append(c.list.Entries, peer.Entry{Name: name, Keys: []string{public}, Ranges: []netip.Prefix{ranges}})
	return key
}

// endpoints gives export j other endpoints.
func (s *speaker) endpoints(tb testing.TB, j, version int) {
	tb.Helper()
	slice := record.Slice{
		AddressType: "IPv4", Ports: []record.SlicePort{{Name: "http", Protocol: "TCP", Port: 8080}, {Name: "metrics", Protocol: "TCP", Port: 9090}},
	}
	var i, k int
	_, err := fmt.Sscanf(s.head.Member, "c%04d", &i)
	require.NoError(tb, err)
	for k = range endpointsEach {
		slice.Endpoints = append(slice.Endpoints, record.Endpoint{
			Address: fmt.Sprintf("10.%d.%d.%d", i/256, i%256, 1+version%20*endpointsEach+k), Ready: true, Serving: true, Zone: "zone-a",
		})
	}
	part, err := slice.Encode()
	require.NoError(tb, err)
	for _, old := range s.record.Exports[j].Parts {
		delete(s.own.Parts, old)
	}
	s.own.Parts[discovery.DigestOf(part)] = part
	s.record.Exports[j].Parts = []discovery.Digest{discovery.DigestOf(part)}
}

// speak puts the next record.
func (s *speaker) speak(tb testing.TB) {
	tb.Helper()
	s.record.Sequence++
	payload, err := s.record.Encode()
	require.NoError(tb, err)
	s.own.Record, err = record.Seal(record.KindRecord, payload, s.key)
	require.NoError(tb, err)
	s.head.Record = discovery.DigestOf(s.own.Record)
}

// Put is the reader's.
func (c *crowd) Put(_ context.Context, own discovery.Own) error {
	c.own, c.ownHead.Record = own, discovery.DigestOf(own.Record)
	return nil
}

func (c *crowd) Heads(context.Context) ([]discovery.Head, error) {
	heads := make([]discovery.Head, 0, len(c.members)+1)
	for _, s := range c.members {
		heads = append(heads, s.head)
		c.given += len(s.head.Member) + len(s.head.Record)
	}
	return append(heads, c.ownHead), nil
}

// Get gives a copy: what the reader holds of it is the reader's.
func (c *crowd) Get(_ context.Context, member string, digest discovery.Digest) ([]byte, error) {
	data := c.own.Record
	if s := c.byName[member]; s != nil {
		data = s.own.Parts[digest]
		if digest == s.head.Record {
			data = s.own.Record
		}
	}
	if data == nil {
		return nil, discovery.ErrNotFound
	}
	c.given += len(data)
	return bytes.Clone(data), nil
}

func (*crowd) Close() error { return nil }

// telling is a crowd that can be watched: the test tells the loop itself.
type telling struct{ *crowd }

func (telling) Watch(ctx context.Context, _ func(discovery.Head)) error {
	<-ctx.Done()
	return nil
}

// solo is the reader: a loop whose rounds are called by hand, and what it costs
// those around it.
type solo struct {
	*Loop
	now    time.Time
	woken  int
	told   int
	kept   int
	fresh  int
	online bool
}

func (c *crowd) read(tb testing.TB) *solo {
	tb.Helper()
	s := &solo{now: began()}
	s.Loop = New(Config{
		List: c.list, UID: "uid-reader", Key: c.key, Now: func() time.Time { return s.now }, Restart: func() { tb.Error("restarted") },
		Open: func(registry Registry, _ string) (Carrier, error) {
			if registry.Git != "" {
				return c, nil
			}
			return telling{c}, nil
		},
		Exports: func(context.Context) ([]mcs.Share, error) { return nil, nil },
		Ranges:  func(context.Context) ([]netip.Prefix, error) { return nil, nil },
		Wake:    func(keys ...types.NamespacedName) { s.woken += len(keys) },
		Save: func(_ context.Context, kept Kept) error {
			text, err := json.Marshal(kept)
			s.kept += len(text)
			return err
		},
		Report: func(_ context.Context, r Report) error {
			s.told++
			s.fresh, s.online = r.Counts[peer.Fresh], r.Connected
			return nil
		},
	})
	s.SetNamespace(here, true)
	s.apply(c.list)
	tb.Cleanup(s.close)
	return s
}

// cold reads all that there is.
func (s *solo) cold(tb testing.TB, c *crowd) {
	tb.Helper()
	s.round(tb.Context())
	s.now = s.now.Add(s.timing.Poll)
	s.round(tb.Context())
	require.True(tb, s.online)
	require.Equal(tb, len(c.members), s.fresh)
	require.Equal(tb, len(c.members)*endpointsEach, s.shared("service-00"))
}

// shared is how many endpoints of a Service there are in all clusters.
func (s *solo) shared(name string) (endpoints int) {
	for _, share := range s.Shares(types.NamespacedName{Namespace: here, Name: name}) {
		for _, slice := range share.Slices {
			endpoints += len(slice.Endpoints)
		}
	}
	return endpoints
}

// minute is one in which every member renews its record, and nothing changes. It
// gives the processor time that the reader takes.
func (s *solo) minute(tb testing.TB, c *crowd) (took time.Duration) {
	tb.Helper()
	polls, rounds := int(s.timing.Renew/s.timing.Poll), int(time.Minute/s.timing.Poll)
	for i := range rounds {
		s.now = s.now.Add(s.timing.Poll)
		for j := i % polls; j < len(c.members); j += polls {
			c.members[j].record.Issued = s.now
			c.members[j].speak(tb)
			if s.watch != nil {
				s.head(c.members[j].head)
			}
		}
		start := busy()
		s.round(tb.Context())
		took += busy() - start
	}
	return took
}

func git() Registry { return Registry{Git: "https://git.example.com/registry.git"} }

func nats() Registry {
	return Registry{NATS: []string{"tls://nats.example.com:4222"}, Bucket: "clusterset"}
}

// A thousand members are for the benchmark: here it is what grows with them.
func TestManyMembersTakeLittleAndRenewInSilence(t *testing.T) {
	const n = 100
	c := newCrowd(t, n, git())
	before := held()
	s := c.read(t)
	s.cold(t, c)
	assert.Less(t, held()-before, int64(memoryBar)*n/1000)

	records := 0
	for _, m := range c.members {
		records += len(m.own.Record)
	}
	s.woken, s.told, s.kept, c.given = 0, 0, 0, 0
	s.minute(t, c)
	assert.Zero(t, s.woken)
	assert.Zero(t, s.told)
	assert.Zero(t, s.kept)
	assert.InEpsilon(t, records, c.given, 0.2, "each record once, and no part")
	runtime.KeepAlive(s)
}

// BenchmarkColdReadOfAThousandMembers is an agent that starts and has read nothing.
// To reach: 256 MiB held.
func BenchmarkColdReadOfAThousandMembers(b *testing.B) {
	c := newCrowd(b, 1000, git())
	for b.Loop() {
		before := held()
		c.given = 0
		s := c.read(b)
		clock, work := time.Now(), busy()
		s.cold(b, c)
		b.ReportMetric(float64(time.Since(clock).Milliseconds()), "cold-ms")
		b.ReportMetric(float64((busy() - work).Milliseconds()), "busy-ms")
		taken := held() - before
		b.ReportMetric(mebi(int(taken)), "held-MiB")
		b.ReportMetric(mebi(c.given), "read-MiB")
		if taken > memoryBar {
			b.Errorf("1,000 members take %d MiB", taken>>20)
		}
		runtime.KeepAlive(s)
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkOneChangedRecord is one endpoint part that changes at one member, in
// fleets of several sizes: the processor time that it takes, and its ratio to that
// of ten members; and what is kept at most every ten seconds where there are
// changes. To reach where changes are told: twice that of ten members.
func BenchmarkOneChangedRecord(b *testing.B) {
	for name, registry := range map[string]Registry{"told": nats(), "polled": git()} {
		floor := 0.0
		for _, n := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/members=%d", name, n), func(b *testing.B) {
				each := changes(b, newCrowd(b, n, registry))
				if n == 10 {
					floor = each
				}
				if floor == 0 { // -bench has left that one out
					return
				}
				b.ReportMetric(each/floor, "x-ten-members")
				if name == "told" && each > 2*floor {
					b.Errorf("a change costs %.1f times as much with %d members as with 10", each/floor, n)
				}
			})
		}
	}
}

// changes gives the nanoseconds that one change takes.
func changes(b *testing.B, c *crowd) float64 {
	b.Helper()
	s := c.read(b)
	s.cold(b, c)
	c.given = 0
	m := c.members[0]
	var took time.Duration
	n := 0
	for b.Loop() {
		n++
		m.endpoints(b, 0, n)
		m.speak(b)
		start := busy()
		if s.watch != nil {
			s.head(m.head)
		} else {
			s.due.poll = time.Time{}
		}
		s.round(b.Context())
		took += busy() - start
	}
	first := s.Shares(types.NamespacedName{Namespace: here, Name: "service-00"})[0].Slices[0].Endpoints[0]
	require.Equal(b, fmt.Sprintf("10.0.0.%d", 1+n%20*endpointsEach), first.Address)
	b.ReportMetric(float64(c.given)/float64(n), "read-B/op")
	s.kept, s.now = 0, s.now.Add(keepEvery)
	s.round(b.Context())
	require.NotZero(b, s.kept)
	b.ReportMetric(float64(s.kept), "kept-B")
	b.ReportMetric(float64(took.Nanoseconds())/float64(n), "busy-ns/op")
	b.ReportMetric(0, "ns/op") // with what the member does
	return float64(took.Nanoseconds()) / float64(n)
}

// BenchmarkAQuietMinute is one of a thousand members that renew their records.
func BenchmarkAQuietMinute(b *testing.B) {
	for name, registry := range map[string]Registry{"git": git(), "nats": nats()} {
		b.Run(name, func(b *testing.B) {
			c := newCrowd(b, 1000, registry)
			s := c.read(b)
			s.cold(b, c)
			c.given = 0
			var took time.Duration
			n := 0
			for b.Loop() {
				took += s.minute(b, c)
				n++
			}
			b.ReportMetric(mebi(c.given)/float64(n), "read-MiB/min")
			b.ReportMetric(float64(took.Milliseconds())/float64(n), "busy-ms/min")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// busy is the processor time that this process has taken: other than by the clock,
// what else runs on the machine does not count.
func busy() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // can only fail for another who
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// held is the heap that is in use.
func held() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first has let go of
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func mebi(n int) float64 { return float64(n) / (1 << 20) }
