package harness

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func eventually(t *testing.T, check func() error) {
	t.Helper()
	require.NoError(t, Eventually(t.Context(), func(context.Context) error { return check() }))
}

func TestEventuallyCallsUntilThereIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		require.NoError(t, Eventually(t.Context(), func(context.Context) error {
			if calls++; calls < 3 {
				return errors.New("not yet")
			}
			return nil
		}))
		assert.Equal(t, 3, calls)
	})
}

func TestEventuallyGivesTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := errors.New("two of three are ready")
		start := time.Now()
		err := Eventually(t.Context(), func(context.Context) error { return last })
		require.ErrorIs(t, err, last)
		require.ErrorContains(t, err, "not within 3m0s: two of three are ready")
		assert.Equal(t, limit, time.Since(start))
	})
}

func TestEventuallyGivesWhatTheCheckSaidBeforeItWasCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		err := Eventually(t.Context(), func(ctx context.Context) error {
			if calls++; calls == 1 {
				return errors.New("two of three are ready")
			}
			<-ctx.Done()
			return fmt.Errorf("get: %w", ctx.Err())
		})
		require.ErrorContains(t, err, "not within 3m0s: two of three are ready")
	})
}

func TestEventuallyEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Eventually(ctx, func(context.Context) error { return errors.New("not yet") })
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "not yet")
}

func TestUntilEndsAtItsOwnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := errors.New("it will never come")
		calls := 0
		err := Until(t.Context(), func(context.Context) (bool, error) {
			if calls++; calls < 3 {
				return false, nil
			}
			return false, own
		})
		assert.Equal(t, own, err)
		assert.Equal(t, 3, calls)
	})
}

func TestUntilHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := Until(t.Context(), func(context.Context) (bool, error) { return false, nil })
		require.ErrorContains(t, err, "not within 3m0s")
	})
}
