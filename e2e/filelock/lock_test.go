package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSecondHolderWaitsForTheFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "lock")
	first, err := Acquire(t.Context(), path)
	require.NoError(t, err)

	second, err := try(path)
	require.NoError(t, err)
	assert.Nil(t, second, "while the first has it")

	got := make(chan *Lock)
	go func() {
		lock, _ := Acquire(t.Context(), path)
		got <- lock
	}()
	first.Release()
	lock := <-got
	require.NotNil(t, lock)
	lock.Release()
}

func TestWaitEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Acquire(t.Context(), path)
	require.NoError(t, err)
	defer first.Release()

	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err = Acquire(ctx, path)
	require.ErrorIs(t, err, cause)
	assert.ErrorContains(t, err, path)
}

func TestLockThatCanNotBeMadeIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Acquire(t.Context(), filepath.Join(file, "lock"))
	require.ErrorContains(t, err, "not a directory")
}
