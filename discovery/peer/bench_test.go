package peer_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery/peer"
)

// fleet is n members with 50 exports each, in 20 namespaces of which one (5 %)
// exists here.
func fleet(b *testing.B, n int) (*world, []*cluster) {
	b.Helper()
	key := newKey(b)
	entries := make([]peer.Entry, n)
	members := make([]*cluster, n)
	for i := range n {
		c := newCluster(b, fmt.Sprintf("c%04d", i))
		c.key = key
		if i == 0 {
			c.key = newKey(b)
		}
		for j := range 50 {
			namespace := fmt.Sprintf("team-%02d", j%20)
			if j%20 == 0 {
				namespace = "shop"
			}
			c.exports(peer.Service{Namespace: namespace, Name: fmt.Sprintf("service-%02d", j)},
				fmt.Sprintf("10.%d.%d.1", 100+i/256, i%256), fmt.Sprintf("10.%d.%d.2", 100+i/256, i%256))
		}
		members[i] = c
		entries[i] = c.entry(netip.MustParsePrefix(fmt.Sprintf("10.%d.%d.0/24", 100+i/256, i%256)))
	}
	w := newWorld(b, entries...)
	// All but the first have one key, and so their numbers rise from one to the next.
	for i, c := range members {
		c.says.Sequence = uint64(i)
	}
	return w, members
}

func BenchmarkOneChangedRecord(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			w, members := fleet(b, n)
			for _, c := range members {
				require.Zero(b, w.take(c, c.next()).Problem)
			}
			c := members[0]
			sealed := make([][]byte, b.N)
			for i := range sealed {
				c.exports(peer.Service{Namespace: "shop", Name: "service-00"}, fmt.Sprintf("10.100.0.%d", 3+i%250))
				sealed[i] = c.next()
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				w.take(c, sealed[i])
			}
		})
	}
}

func BenchmarkMemoryOfAThousandMembers(b *testing.B) {
	for b.Loop() {
		w, members := fleet(b, 1000)
		sealed := make([][]byte, len(members))
		total := 0
		for i, c := range members {
			sealed[i] = c.next()
			total += len(sealed[i])
		}
		before := heap()
		for i, c := range members {
			require.Zero(b, w.take(c, sealed[i]).Problem)
		}
		b.ReportMetric(float64(heap()-before)/1000, "heap-B/member")
		b.ReportMetric(float64(total)/1000, "record-B/member")
		runtime.KeepAlive(w)
		runtime.KeepAlive(sealed)
		runtime.KeepAlive(members)
	}
}

func BenchmarkNamespaceAppears(b *testing.B) {
	w, members := fleet(b, 1000)
	for _, c := range members {
		require.Zero(b, w.take(c, c.next()).Problem)
	}
	for b.Loop() {
		w.Follow("team-01")
		w.Forget("team-01")
	}
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
