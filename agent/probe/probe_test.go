package probe

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serve answers until the test ends, or until stop is called.
func serve(t *testing.T, dir string, checks Checks) (stop func()) {
	t.Helper()
	server, err := Listen(dir, checks)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	stop = func() {
		cancel()
		require.NoError(t, <-ended)
		ended <- nil
	}
	t.Cleanup(stop)
	return stop
}

func yes() error { return nil }

func TestTheAnswersAreThoseOfTheChecks(t *testing.T) {
	dir := t.TempDir()
	var live, ready error
	serve(t, dir, Checks{Live: func() error { return live }, Ready: func() error { return ready }})
	require.NoError(t, Live(t.Context(), dir))
	require.NoError(t, Ready(t.Context(), dir))
	live = errors.New("a loop is stuck")
	assert.EqualError(t, Live(t.Context(), dir), "a loop is stuck")
	assert.NoError(t, Ready(t.Context(), dir), "each has its own")
	live, ready = nil, errors.New("nothing is verified")
	assert.NoError(t, Live(t.Context(), dir))
	assert.EqualError(t, Ready(t.Context(), dir), "nothing is verified")
}

func TestTheSocketIsTheAgentsAlone(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, Checks{yes, yes})
	info, err := os.Stat(filepath.Join(dir, socketName))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	assert.Equal(t, fs.ModeSocket, info.Mode().Type())
}

func TestADeepDataFolderIsNoObstacle(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", 40))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.Greater(t, len(dir), 108)
	serve(t, dir, Checks{yes, yes})
	assert.NoError(t, Live(t.Context(), dir))
}

func TestASocketThatACrashHasLeftIsReplaced(t *testing.T) {
	dir := t.TempDir()
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unix"})
	require.NoError(t, err)
	left.SetUnlinkOnClose(false)
	require.NoError(t, left.Close())
	require.Error(t, Live(t.Context(), dir), "nobody is there")
	serve(t, dir, Checks{yes, yes})
	assert.NoError(t, Live(t.Context(), dir))
}

func TestNobodyThereIsNoGood(t *testing.T) {
	dir := t.TempDir()
	assert.ErrorContains(t, Live(t.Context(), dir), "does not answer")
	assert.ErrorIs(t, Ready(t.Context(), filepath.Join(dir, "none")), fs.ErrNotExist)
	serve(t, dir, Checks{yes, yes})()
	assert.ErrorContains(t, Live(t.Context(), dir), "does not answer", "it has ended")
}

func TestAFolderThatCannotHoldASocketIsAnError(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, socketName, "full"), 0o700))
	_, err := Listen(dir, Checks{yes, yes})
	require.ErrorContains(t, err, socketName)
	_, err = Listen(filepath.Join(dir, "none"), Checks{yes, yes})
	assert.ErrorIs(t, err, fs.ErrNotExist)
}
