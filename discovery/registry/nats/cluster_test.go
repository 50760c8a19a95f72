package nats_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/registry/nats"
)

// cluster is three servers with a bucket on all of them.
type cluster struct {
	servers []*server.Server
	urls    []string
}

func newCluster(tb testing.TB) *cluster {
	tb.Helper()
	var routes []*url.URL
	var ports []int
	for range 3 {
		port := freePort(tb)
		ports = append(ports, port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	c := &cluster{}
	for i, port := range ports {
		options := local(tb, &server.Options{ServerName: fmt.Sprintf("n%d", i), Routes: routes})
		options.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port}
		s, err := server.NewServer(options)
		require.NoError(tb, err)
		s.Start()
		tb.Cleanup(func() { stop(s) })
		c.servers = append(c.servers, s)
	}
	for _, s := range c.servers {
		require.True(tb, s.ReadyForConnections(ready))
		c.urls = append(c.urls, s.ClientURL())
	}
	config := settings()
	config.Replicas = 3
	js := admin(tb, c.urls[0])
	makeBucket(tb, js, config)
	require.Eventually(tb, func() bool {
		stream, err := js.Stream(tb.Context(), "KV_"+bucket)
		if err != nil || stream.CachedInfo().Cluster == nil || stream.CachedInfo().Cluster.Leader == "" {
			return false
		}
		replicas := stream.CachedInfo().Cluster.Replicas
		return len(replicas) == 2 && replicas[0].Current && replicas[1].Current
	}, ready, 50*time.Millisecond)
	return c
}

func freePort(tb testing.TB) int {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// leader is the server that leads the bucket.
func (c *cluster) leader(t *testing.T) int {
	t.Helper()
	for i, s := range c.servers {
		if s.JetStreamIsStreamLeader("$G", "KV_"+bucket) {
			return i
		}
	}
	require.Fail(t, "no leader")
	return 0
}

// first gives the URLs with that of server i first.
func (c *cluster) first(i int) []string {
	return append([]string{c.urls[i]}, append(c.urls[:i:i], c.urls[i+1:]...)...)
}

func TestALostServerIsNoGap(t *testing.T) {
	for name, connected := range map[string]struct{ writer, reader int }{ // how far from the leader
		"the leader, that both talk to":        {0, 0},
		"the leader, that nobody talks to":     {1, 2},
		"a follower, that the reader talks to": {0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			lead := c.leader(t)
			lost := lead
			if connected.reader == 1 && connected.writer == 0 {
				lost = (lead + 1) % 3
			}
			alice := open(t, "alice", c.first((lead+connected.writer)%3)...)
			bob := open(t, "bob", c.first((lead+connected.reader)%3)...)
			var last atomic.Value
			last.Store(discovery.Head{})
			ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
			var running sync.WaitGroup
			running.Go(func() { assert.ErrorIs(t, bob.Watch(ctx, func(h discovery.Head) { last.Store(h) }), context.Canceled) })
			defer running.Wait()
			defer end()

			for version := range 30 {
				if version == 10 {
					stop(c.servers[lost])
				}
				require.NoError(t, alice.Put(t.Context(), record(fmt.Sprint(version))), "version %d", version)
			}
			want := head("alice", "29")
			assert.Eventually(t, func() bool { return last.Load() == want }, ready, 5*time.Millisecond)
			require.EventuallyWithT(t, func(t *assert.CollectT) {
				heads, err := bob.Heads(context.Background())
				require.NoError(t, err)
				assert.Equal(t, []discovery.Head{want}, heads)
			}, ready, 20*time.Millisecond)
			data, err := bob.Get(t.Context(), "alice", want.Record)
			require.NoError(t, err)
			assert.Equal(t, "29", string(data))
		})
	}
}

func TestWithoutAMajorityAPutIsAnError(t *testing.T) {
	c := newCluster(t)
	alice := openWith(t, nats.Options{URLs: c.urls[:1], Bucket: bucket, Member: "alice", Timeout: 3 * time.Second})
	require.NoError(t, alice.Put(t.Context(), record("r1")))
	stop(c.servers[1])
	stop(c.servers[2])
	assert.ErrorIs(t, alice.Put(t.Context(), record("r2")), context.DeadlineExceeded)
	heads, err := alice.Heads(t.Context())
	if err == nil {
		assert.Equal(t, []discovery.Head{head("alice", "r1")}, heads, "an error, or what is there, and never empty")
	}
}

// link is a network that can be cut.
type link struct {
	address  string
	listener net.Listener
	running  sync.WaitGroup

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func newLink(t *testing.T, target string) *link {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &link{address: listener.Addr().String(), listener: listener}
	l.running.Go(func() { l.accept(target) })
	t.Cleanup(func() {
		_ = listener.Close()
		l.set(true)
		l.running.Wait()
	})
	return l
}

func (l *link) accept(target string) {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far, err := new(net.Dialer).DialContext(context.Background(), "tcp", target)
		if err != nil || !l.keep(near, far) {
			_ = near.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
			l.running.Go(func() {
				_, _ = pair[0].(*net.TCPConn).WriteTo(pair[1])
				_ = pair[0].Close()
				_ = pair[1].Close()
			})
		}
	}
}

func (l *link) keep(near, far net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		_ = far.Close()
		return false
	}
	l.conns = append(l.conns, near, far)
	return true
}

func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		for _, c := range l.conns {
			_ = c.Close()
		}
		l.conns = nil
	}
}

// sides are a hub with the bucket and a leaf with its mirror.
func sides(t *testing.T) (hub, leaf string, between *link) {
	t.Helper()
	options := local(t, &server.Options{ServerName: "hub", JetStreamDomain: "hub"})
	options.LeafNode.Host, options.LeafNode.Port = "127.0.0.1", freePort(t)
	options.LeafNode.NoAdvertise = true // else the leaf goes past the link
	center := start(t, options)
	between = newLink(t, fmt.Sprintf("127.0.0.1:%d", options.LeafNode.Port))
	edge := local(t, &server.Options{ServerName: "leaf", JetStreamDomain: "leaf"})
	edge.LeafNode.ReconnectInterval = 50 * time.Millisecond
	edge.LeafNode.Remotes = []*server.RemoteLeafOpts{{URLs: []*url.URL{{Scheme: "nats", Host: between.address}}}}
	side := start(t, edge)
	makeBucket(t, admin(t, center.ClientURL()), settings())
	_, err := admin(t, side.ClientURL()).CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "KV_" + bucket, MaxMsgsPerSubject: 1, AllowDirect: true, MirrorDirect: true, AllowMsgTTL: true,
		Discard: jetstream.DiscardNew, DenyDelete: true, AllowRollup: true,
		Mirror: &jetstream.StreamSource{Name: "KV_" + bucket, Domain: "hub"},
	})
	require.NoError(t, err)
	return center.ClientURL(), side.ClientURL(), between
}

func TestAMirrorServesASideThatIsCutOff(t *testing.T) {
	hub, leaf, between := sides(t)
	alice := open(t, "alice", hub)
	bob := openWith(t, nats.Options{URLs: []string{leaf}, Bucket: bucket, Member: "bob", Timeout: 3 * time.Second})
	sees := func(c *nats.Carrier, want ...discovery.Head) {
		t.Helper()
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			heads, err := c.Heads(context.Background())
			require.NoError(t, err)
			assert.Equal(t, want, heads)
		}, ready, 20*time.Millisecond)
	}
	require.NoError(t, alice.Put(t.Context(), record("a1")))
	require.EventuallyWithT(t, func(c *assert.CollectT) { require.NoError(c, bob.Put(t.Context(), record("b1"))) }, ready, 20*time.Millisecond)
	sees(bob, head("alice", "a1"), head("bob", "b1"))

	between.set(true)
	require.NoError(t, alice.Put(t.Context(), record("a2")), "the other side goes on")
	err := bob.Put(t.Context(), record("b2"))
	assert.ErrorContains(t, err, "put bob: record: no server of this side takes it")
	assert.ErrorIs(t, err, jetstream.ErrNoStreamResponse)
	sees(bob, head("alice", "a1"), head("bob", "b1"))
	data, err := bob.Get(t.Context(), "alice", head("alice", "a1").Record)
	require.NoError(t, err)
	assert.Equal(t, "a1", string(data))

	between.set(false)
	require.EventuallyWithT(t, func(c *assert.CollectT) { require.NoError(c, bob.Put(t.Context(), record("b3"))) }, ready, 20*time.Millisecond)
	sees(bob, head("alice", "a2"), head("bob", "b3"))
	sees(alice, head("alice", "a2"), head("bob", "b3"))
}
