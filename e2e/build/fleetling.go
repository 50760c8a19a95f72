package build

import (
	"context"
	"path/filepath"

	"github.com/fleetling/fleetling/e2e/filelock"
)

// Fleetling builds the binary that ships and gives its path. Go's own cache
// makes the second call quick.
func Fleetling(ctx context.Context, root string) (string, error) {
	path := filepath.Join(Cache(root), "fleetling")
	lock, err := filelock.Acquire(ctx, path+".lock")
	if err != nil {
		return "", err
	}
	defer lock.Release()
	cmd := goCommand(ctx, root, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./agent/cmd/fleetling")
	if err := run(cmd, &report{}); err != nil {
		return "", err
	}
	return path, nil
}
