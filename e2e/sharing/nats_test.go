package sharing_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/sources/gittest"
)

func TestNATSCarriesTheClusterSet(t *testing.T) {
	js := startJetStream(t)
	for name, times := range js.carries(t) {
		assert.Equal(t, 1, times, "starts that %s needs to follow another registry", name)
	}
	all := sides(t, "ap", "eu", "us")
	ap, others := all[0], all[1:]
	ap.backend("catalog", 1, nil)
	ap.export("catalog")
	for _, s := range others {
		s.imported("catalog", "ap")
		s.has("catalog", "ap", 1)
	}
	entry, err := js.bucket.Get(t.Context(), "ap.record")
	require.NoError(t, err)
	assert.Contains(t, string(entry.Value()), ap.namespace)

	gaps := watchGaps(t, others, "catalog", "ap")
	js.stopLeader(t)
	ap.scale("catalog", 2)
	for _, s := range others {
		s.has("catalog", "ap", 2)
	}
	assert.Empty(t, gaps())

	ap.unexport("catalog")
	for _, s := range others {
		s.notImported("catalog")
	}
}

// watchGaps watches what clusters import until the function that it gives is
// called, which gives each time that there was nothing ready.
func watchGaps(t *testing.T, importers []*side, name, from string) func() []string {
	t.Helper()
	end := make(chan struct{})
	found := make(chan []string)
	for _, s := range importers {
		events := watchImported(t, s.Member, s.namespace, name, from)
		go func() { found <- gapsOf(events, end) }()
	}
	return func() (all []string) {
		close(end)
		for range importers {
			all = append(all, <-found...)
		}
		return all
	}
}

func gapsOf(events <-chan watch.Event, end <-chan struct{}) (gaps []string) {
	seen := 0
	for {
		select {
		case <-end:
			if seen < 2 {
				gaps = append(gaps, "the watch has not seen the slice change")
			}
			return gaps
		case event, open := <-events:
			slice, ok := event.Object.(*discoveryv1.EndpointSlice)
			if !open || !ok {
				return append(gaps, fmt.Sprintf("the watch has ended: %v", event))
			}
			seen++
			if event.Type == watch.Deleted || countReady(slice) == 0 {
				gaps = append(gaps, fmt.Sprintf("%s: %s %+v", slice.Name, event.Type, slice.Endpoints))
			}
		}
	}
}

func countReady(slice *discoveryv1.EndpointSlice) (n int) {
	for _, e := range slice.Endpoints {
		if e.Conditions.Ready == nil || *e.Conditions.Ready {
			n++
		}
	}
	return n
}

// jetStream is three NATS servers, each in this process, with the ClusterSet's
// bucket on all of them.
type jetStream struct {
	servers []*server.Server
	// urls are theirs at the hub.
	urls   []string
	bucket jetstream.KeyValue
}

func startJetStream(tb testing.TB) *jetStream {
	tb.Helper()
	var routes []*url.URL
	var ports []int
	for range 3 {
		ports = append(ports, freePort(tb))
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", ports[len(ports)-1])})
	}
	js := &jetStream{}
	for i, port := range ports {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: tb.TempDir(), Routes: routes,
			// The clusters know the others by their addresses at the hub.
			Cluster: server.ClusterOpts{Name: "hub", Host: "127.0.0.1", Port: port, NoAdvertise: true},
		})
		require.NoError(tb, err)
		s.Start()
		tb.Cleanup(func() { stopServer(s) })
		js.servers = append(js.servers, s)
	}
	for _, s := range js.servers {
		require.True(tb, s.ReadyForConnections(time.Minute))
		_, port, err := net.SplitHostPort(s.Addr().String())
		require.NoError(tb, err)
		forwarder, err := w.set.Hub.Forward(tb.Context(), net.JoinHostPort(w.set.Hub.Address().String(), port), s.Addr().String())
		require.NoError(tb, err)
		tb.Cleanup(forwarder.Close)
		js.urls = append(js.urls, "nats://"+forwarder.Address())
	}
	js.makeBucket(tb)
	return js
}

// makeBucket makes it as discovery/registry/nats has it made.
func (js *jetStream) makeBucket(tb testing.TB) {
	tb.Helper()
	var urls []string
	for _, s := range js.servers {
		urls = append(urls, s.ClientURL())
	}
	conn, err := nats.Connect(strings.Join(urls, ","))
	require.NoError(tb, err)
	tb.Cleanup(conn.Close)
	admin, err := jetstream.New(conn)
	require.NoError(tb, err)
	require.NoError(tb, harness.Eventually(tb.Context(), func(ctx context.Context) error {
		// Before the servers have found a leader, nobody answers.
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		js.bucket, err = admin.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: "clusterset", Replicas: 3, History: 1, LimitMarkerTTL: time.Hour, MaxValueSize: 1 << 20,
		})
		return err
	}))
}

// carries has the fleet use these servers until the end of tb, and gives how often
// each agent was started for it.
func (js *jetStream) carries(tb testing.TB) map[string]int {
	tb.Helper()
	file, err := os.ReadFile(filepath.Join(w.fleet.Dir, "fleetling.yaml"))
	require.NoError(tb, err)
	before := regexp.MustCompile(`(?m)^registry: (.*)$`).FindSubmatch(file)
	require.NotNil(tb, before, "%s", file)
	repo := gittest.NewRepo(tb)
	heads := func(member string) string { return repo.Git("ls-remote", w.registry.URL, "refs/heads/members/"+member) }
	tb.Cleanup(func() {
		old := map[string]string{}
		for _, name := range names {
			old[name] = heads(name)
		}
		moveRegistry(context.WithoutCancel(tb.Context()), tb, string(before[1]), func(_ context.Context, member string) error {
			if heads(member) == old[member] {
				return fmt.Errorf("%s has not put a record into the git registry again", member)
			}
			return nil
		})
	})
	return moveRegistry(tb.Context(), tb, `{nats: {servers: ["`+strings.Join(js.urls, `", "`)+`"]}}`, func(ctx context.Context, member string) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if _, err := js.bucket.Get(ctx, member+".record"); err != nil {
			return fmt.Errorf("record of %s: %w", member, err)
		}
		return nil
	})
}

// moveRegistry commits another registry, and waits until all members have arrived
// there. An agent ends to follow it, and is started again, as its Pod would be.
func moveRegistry(ctx context.Context, tb testing.TB, registry string, arrived func(ctx context.Context, member string) error) map[string]int {
	tb.Helper()
	file, err := os.ReadFile(filepath.Join(w.fleet.Dir, "fleetling.yaml"))
	require.NoError(tb, err)
	w.fleet.Write("fleetling.yaml", regexp.MustCompile(`(?m)^registry: .*$`).ReplaceAllString(string(file), "registry: "+registry))
	w.revision = w.fleet.Push("another registry")
	starts := map[string]int{}
	require.NoError(tb, harness.Eventually(ctx, func(ctx context.Context) error {
		var errs []error
		for i, m := range w.members {
			if m.Agent.Check() != nil {
				starts[names[i]]++
				errs = append(errs, m.Agent.Restart(false))
			}
			errs = append(errs, arrived(ctx, names[i]))
		}
		return errors.Join(errs...)
	}))
	for _, m := range w.members {
		require.NoError(tb, m.Ready(ctx, w.revision))
	}
	return starts
}

// stopLeader stops the server that leads the bucket, for good.
func (js *jetStream) stopLeader(tb testing.TB) {
	tb.Helper()
	for _, s := range js.servers {
		if s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, "KV_clusterset") {
			stopServer(s)
			return
		}
	}
	require.Fail(tb, "no server leads the bucket")
}

func stopServer(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

func freePort(tb testing.TB) int {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
