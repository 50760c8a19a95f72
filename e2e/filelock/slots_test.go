package filelock

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSlotsAreTakenAllOrNone(t *testing.T) {
	slots := Slots{Dir: t.TempDir(), Count: 3}
	release, err := slots.Acquire(t.Context(), 2)
	require.NoError(t, err)

	held, err := slots.try(2)
	require.NoError(t, err)
	require.Nil(t, held, "only one is left")

	one, err := slots.try(1)
	require.NoError(t, err)
	require.Len(t, one, 1, "the attempt before has left it")

	release()
	two, err := slots.Acquire(t.Context(), 2)
	require.NoError(t, err)
	two()
	releaseAll(one)
	three, err := slots.Acquire(t.Context(), 3)
	require.NoError(t, err)
	three()
}

func TestMoreThanThereAreIsAnError(t *testing.T) {
	_, err := Slots{Dir: t.TempDir(), Count: 3}.Acquire(t.Context(), 4)
	require.ErrorContains(t, err, "4 asked for, there are 3")
}

func TestWaitForSlotsEndsWithTheContext(t *testing.T) {
	slots := Slots{Dir: t.TempDir(), Count: 1}
	release, err := slots.Acquire(t.Context(), 1)
	require.NoError(t, err)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = slots.Acquire(ctx, 1)
	assert.ErrorIs(t, err, context.Canceled)
}
