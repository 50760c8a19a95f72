package sharing_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/fleetling/fleetling/discovery/peer"
	"github.com/fleetling/fleetling/e2e/clusterset"
	"github.com/fleetling/fleetling/e2e/world"
)

// bars are what a benchmark has to reach; zero is no bar.
type bars struct{ p50, p99 time.Duration }

// BenchmarkEndpointOverGit is from an endpoint that changes in one cluster to the
// EndpointSlice that is written in another one. To reach: 99 of 100 within two
// polls and a second.
func BenchmarkEndpointOverGit(b *testing.B) {
	poll := peer.GitTiming().Poll
	benchmarkEndpoint(b, 20, poll, bars{p99: 2*poll + time.Second})
}

// BenchmarkEndpointOverNATS is the same with three NATS servers. To reach: half of
// them within 300 ms, 99 of 100 within a second.
func BenchmarkEndpointOverNATS(b *testing.B) {
	startJetStream(b).carries(b)
	benchmarkEndpoint(b, 100, 200*time.Millisecond, bars{p50: 300 * time.Millisecond, p99: time.Second})
}

// benchmarkEndpoint takes so many samples a run. Changes come at any time: within
// spread after the last one has arrived, and so not always right after a poll.
func benchmarkEndpoint(b *testing.B, samples int, spread time.Duration, want bars) {
	b.Helper()
	r := newRelay(b)
	r.change()
	var took []time.Duration
	for b.Loop() {
		for range samples {
			<-time.After(mathrand.N(spread))
			took = append(took, r.change())
		}
	}
	slices.Sort(took)
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	b.ReportMetric(float64(p50.Milliseconds()), "p50-ms")
	b.ReportMetric(float64(p99.Milliseconds()), "p99-ms")
	b.ReportMetric(0, "ns/op")
	if want.p50 > 0 && p50 > want.p50 || p99 > want.p99 {
		b.Errorf("of %d samples p50 is %s and p99 is %s: the bars are %+v", len(took), p50, p99, want)
	}
}

// relay is a Service of ap without a selector, which eu imports.
type relay struct {
	b        *testing.B
	from     *world.Member
	slice    *discoveryv1.EndpointSlice
	arriving <-chan watch.Event
	site     *clusterset.Cluster
	changes  int
}

func newRelay(b *testing.B) *relay {
	b.Helper()
	ap, site := w.member("ap")
	eu, _ := w.member("eu")
	namespace := strings.ToLower("bench-" + rand.Text()[:8])
	for _, m := range []*world.Member{ap, eu} {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		require.NoError(b, m.Client.Create(b.Context(), object))
		b.Cleanup(func() { _ = m.Client.Delete(context.WithoutCancel(b.Context()), object) })
	}
	meta := metav1.ObjectMeta{Name: "relay", Namespace: namespace, Labels: map[string]string{discoveryv1.LabelServiceName: "relay"}}
	port, name, protocol := int32(80), "http", corev1.ProtocolTCP
	r := &relay{b: b, from: ap, site: site, slice: &discoveryv1.EndpointSlice{
		ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{},
		Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}}
	for _, object := range []client.Object{
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: name, Port: port, Protocol: protocol}}}},
		r.slice, &v1beta1.ServiceExport{ObjectMeta: meta},
	} {
		require.NoError(b, ap.Client.Create(b.Context(), object))
	}
	r.arriving = watchImported(b, eu, namespace, "relay", "ap")
	return r
}

// change changes the endpoint, and gives how long it takes until eu has it.
func (r *relay) change() time.Duration {
	r.b.Helper()
	address := r.site.Site.Pods().Addr().As4()
	address[3] = byte(100 + r.changes%100)
	r.changes++
	text := fmt.Sprintf("%d.%d.%d.%d", address[0], address[1], address[2], address[3])
	patch, err := json.Marshal(map[string]any{"endpoints": []discoveryv1.Endpoint{{Addresses: []string{text}}}})
	require.NoError(r.b, err)
	start := time.Now()
	require.NoError(r.b, r.from.Client.Patch(r.b.Context(), r.slice, client.RawPatch("application/merge-patch+json", patch)))
	limit := time.After(3 * time.Minute)
	for {
		select {
		case event, open := <-r.arriving:
			require.True(r.b, open, "the watch has ended")
			if slice, ok := event.Object.(*discoveryv1.EndpointSlice); ok && event.Type != watch.Deleted && holds(slice, text) {
				return time.Since(start)
			}
		case <-limit:
			r.b.Fatalf("change %d has not arrived", r.changes)
		}
	}
}

func holds(slice *discoveryv1.EndpointSlice, address string) bool {
	return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return slices.Contains(e.Addresses, address) })
}

// watchImported tells of all changes of what a member imports of a cluster, until
// the end of tb.
func watchImported(tb testing.TB, m *world.Member, namespace, name, from string) <-chan watch.Event {
	tb.Helper()
	c, err := client.NewWithWatch(m.Config(), client.Options{Scheme: m.Client.Scheme()})
	require.NoError(tb, err)
	watching, err := c.Watch(tb.Context(), &discoveryv1.EndpointSliceList{}, client.InNamespace(namespace), client.MatchingLabels{
		v1beta1.LabelServiceName: name, v1beta1.LabelSourceCluster: from,
	})
	require.NoError(tb, err)
	tb.Cleanup(watching.Stop)
	return watching.ResultChan()
}
