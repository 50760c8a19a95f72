package agent

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/events"
)

func TestAChangedFileIsNoticedHoweverItChanges(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	write := func(text string) { // whole, or not yet
		require.NoError(t, os.WriteFile(path+".next", []byte(text), 0o600))
		require.NoError(t, os.Rename(path+".next", path))
	}
	write("one")
	changed := make(chan struct{}, 10)
	f := newFollower(func() { changed <- struct{}{} }, path)
	write("before the start")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Start(ctx) }()
	<-changed

	write("two")
	<-changed
	require.NoError(t, os.Remove(path))
	<-changed

	// As a mounted ConfigMap changes: the file is a link to a link, and the
	// latter is swapped.
	for _, version := range []string{"v1", "v2"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, version, "config.yaml"), []byte(version), 0o600))
	}
	require.NoError(t, os.Symlink("v1", filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink(filepath.Join("..data", "config.yaml"), path))
	<-changed
	require.NoError(t, os.Symlink("v2", filepath.Join(dir, "..next")))
	require.NoError(t, os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")))
	<-changed

	cancel()
	require.NoError(t, <-ended)
	assert.Empty(t, changed, "the same content is no change")
}

func TestAConfigurationThatCantBeReadEndsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	recorder, restarts := events.NewFakeRecorder(1), 0
	changed := Options{ConfigFile: path}.onConfig(eventWriter{recorder}, func() { restarts++ })

	require.NoError(t, os.WriteFile(path, []byte(minimal+"sorce: {}\n"), 0o600))
	changed()
	assert.Zero(t, restarts)
	told := <-recorder.Events
	assert.Contains(t, told, "ConfigurationRefused")
	assert.Contains(t, told, `unknown field "sorce"`)

	require.NoError(t, os.WriteFile(path, []byte(minimal), 0o600))
	changed()
	assert.Equal(t, 1, restarts)
	assert.Empty(t, recorder.Events)
}
