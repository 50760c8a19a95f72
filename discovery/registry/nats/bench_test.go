package nats_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery"
)

// BenchmarkPutToWatch is from the start of a put of a changed record to when a
// watcher is told, in milliseconds.
func BenchmarkPutToWatch(b *testing.B) {
	b.Run("one server", func(b *testing.B) {
		s := start(b, local(b, &server.Options{}))
		makeBucket(b, admin(b, s.ClientURL()), settings())
		putToWatch(b, s.ClientURL())
	})
	b.Run("three servers", func(b *testing.B) { putToWatch(b, newCluster(b).urls...) })
}

func putToWatch(b *testing.B, urls ...string) {
	b.Helper()
	alice, bob := open(b, "alice", urls...), open(b, "bob", urls...)
	told := make(chan discovery.Head, 1)
	ctx, end := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- bob.Watch(ctx, func(h discovery.Head) { told <- h }) }()
	require.NoError(b, alice.Put(b.Context(), record("first")))
	<-told
	var took []time.Duration
	for b.Loop() {
		text := fmt.Sprint(len(took))
		begun := time.Now()
		require.NoError(b, alice.Put(b.Context(), record(text)))
		require.Equal(b, head("alice", text), <-told)
		took = append(took, time.Since(begun))
	}
	end()
	require.ErrorIs(b, <-ended, context.Canceled)
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
