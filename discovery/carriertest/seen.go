package carriertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery"
)

// seen is the newest head of each member that a Watch told of.
type seen struct {
	mu    sync.Mutex
	heads map[string]discovery.Head
}

// watch runs until the test ends.
func watch(t *testing.T, w discovery.Watcher) *seen {
	t.Helper()
	s := &seen{heads: map[string]discovery.Head{}}
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { assert.ErrorIs(t, w.Watch(ctx, s.add), context.Canceled) })
	t.Cleanup(func() {
		end()
		running.Wait()
	})
	return s
}

func (s *seen) add(h discovery.Head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heads[h.Member] = h
}

// wait waits for the newest head of a member to be want.
func (s *seen) wait(t *testing.T, want discovery.Head) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		s.mu.Lock()
		defer s.mu.Unlock()
		assert.Equal(c, want, s.heads[want.Member])
	}, patience, 5*time.Millisecond)
}
