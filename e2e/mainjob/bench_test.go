package mainjob_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/world"
	"github.com/fleetling/fleetling/sources/gittest"
)

const many = 1000

// BenchmarkThousandObjects measures a commit that adds 1,000 ConfigMaps, from
// the push to Ready, against a floor in the same run: the same 1,000 objects by
// bare server-side applies, eight at once, on the same API server.
func BenchmarkThousandObjects(b *testing.B) {
	fleet := world.NewFleet(b)
	fleet.Write("fleetling.yaml", "apiVersion: config.fleetling.dev/v1alpha1\nkind: Fleet\nclusterSet: prod\n"+
		"clusters: {files: [\"clusters/*.yaml\"], unlisted: identity}\naddons: [{name: base, path: addons/base}]\n")
	fleet.Write("clusters/other.yaml", "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: other}\n")
	fleet.Write("addons/base/ns.yaml", namespace("shop"))
	m := world.Join(b.Context(), b, host, world.MemberOptions{
		Name: "one", URL: fleet.Server.URL, FirstSigners: []gittest.Key{fleet.Key}, Interval: time.Second,
	})
	require.NoError(b, m.Ready(b.Context(), fleet.Push("a namespace")))
	require.NoError(b, m.Client.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "floor"}}))
	for b.Loop() {
		floor := applyAll(b, m.Client)
		for i := range many {
			fleet.Write(fmt.Sprintf("addons/base/cm-%04d.yaml", i), configMap(fmt.Sprintf("cm-%04d", i), b.Name()))
		}
		before, err := m.Audit(b.Context(), world.User)
		require.NoError(b, err)
		start := time.Now()
		require.NoError(b, m.Ready(b.Context(), fleet.Push("a thousand")))
		took := time.Since(start)
		after, err := m.Audit(b.Context(), world.User)
		require.NoError(b, err)
		memory, err := m.Agent.Memory()
		require.NoError(b, err)
		b.ReportMetric(took.Seconds()/floor.Seconds(), "x-floor")
		b.ReportMetric(float64(len(after)-len(before))/many, "requests/object")
		b.ReportMetric(float64(memory.Peak)/(1<<20), "peak-MiB")
	}
}

// applyAll is the floor.
func applyAll(b *testing.B, c client.Client) time.Duration {
	b.Helper()
	start := time.Now()
	var group errgroup.Group
	group.SetLimit(8)
	for i := range many {
		group.Go(func() error {
			u := &unstructured.Unstructured{}
			text := strings.ReplaceAll(configMap(fmt.Sprintf("cm-%04d", i), b.Name()), "namespace: shop", "namespace: floor")
			if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
				return err
			}
			return c.Apply(b.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("floor"))
		})
	}
	require.NoError(b, group.Wait())
	return time.Since(start)
}

// TestLongIdle leaves an agent with the 131 objects of kube-prometheus alone for
// five minutes and says what it takes. To reach: 80 MiB resident.
func TestLongIdle(t *testing.T) {
	if os.Getenv("FLEETLING_LONG") == "" {
		t.Skip("runs in make test-long")
	}
	s := newScenario(t, 1)
	s.corpus("kube-prometheus", "addons/kube-prometheus")
	s.addOns("{name: monitoring, path: addons/kube-prometheus, timeout: 10s}")
	revision := s.fleet.Push("kube-prometheus")
	s.join(withNode, func(o *world.MemberOptions) { o.Interval = 30 * time.Second })
	s.do(harness.Eventually(t.Context(), func(ctx context.Context) error {
		addOn, err := s.m.AddOn(ctx, "monitoring")
		if err != nil {
			return err
		}
		return converged(addOn, revision)
	}))
	s.do(s.m.AddOnCondition(t.Context(), "monitoring", v1alpha1.Ready, "TimedOut")) // the APIService that nobody serves
	s.rest()
	before, err := s.m.Audit(t.Context(), world.User)
	s.do(err)
	select {
	case <-time.After(5 * time.Minute):
	case <-s.m.Agent.Ended():
		t.Fatal("the agent ended")
	}
	memory, err := s.m.Agent.Memory()
	s.do(err)
	after, err := s.m.Audit(t.Context(), world.User)
	s.do(err)
	binary, err := harness.Binary(t.Context())
	s.do(err)
	info, err := os.Stat(binary)
	s.do(err)
	var writes []string
	for _, e := range after[len(before):] {
		if e.Verb != "watch" && e.Verb != "get" && e.Verb != "list" && e.ObjectRef.Resource != "leases" {
			writes = append(writes, e.Verb+" "+e.RequestURI)
		}
	}
	t.Logf("resident %d MiB, peak %d MiB, binary %d MB, writes but the Lease's %d", memory.Resident>>20, memory.Peak>>20, info.Size()/1e6, len(writes))
	assert.Empty(t, writes)
	assert.LessOrEqual(t, memory.Resident>>20, int64(80), "MiB")
	assert.LessOrEqual(t, info.Size()/1e6, int64(60), "MB")
}
