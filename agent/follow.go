package agent

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// follower calls back when the content of one of its files has changed. Mounted
// ConfigMaps and Secrets change by a link that is swapped in their folder, so it
// is the folder that is watched, and the content that is compared.
type follower struct {
	paths   []string
	changed func()
	last    [sha256.Size]byte
}

// newFollower notes the content as it is now: a change from here on is seen,
// also one from before Start.
func newFollower(changed func(), paths ...string) *follower {
	f := &follower{paths: paths, changed: changed}
	f.last = f.hash()
	return f
}

// Start follows until ctx ends. A folder that is not there can't be followed:
// what is in it is read again at the next interval.
func (f *follower) Start(ctx context.Context) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("follow files: %w", err)
	}
	defer func() { _ = watcher.Close() }()
	for _, path := range f.paths {
		_ = watcher.Add(filepath.Dir(path))
	}
	for {
		if now := f.hash(); now != f.last {
			f.last = now
			f.changed()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-watcher.Events:
		case err := <-watcher.Errors:
			if err == nil {
				continue
			}
			// Some events were lost: compare, as after any event.
		}
	}
}

// NeedLeaderElection says that an agent in waiting follows, too.
func (f *follower) NeedLeaderElection() bool { return false }

func (f *follower) hash() [sha256.Size]byte {
	h := sha256.New()
	for _, path := range f.paths {
		data, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d %v\n", path, len(data), err != nil)
		_, _ = h.Write(data)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
