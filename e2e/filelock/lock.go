package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// interval is how often a lock that another process holds is tried again:
// waiting inside flock(2) can't be cancelled.
const interval = 200 * time.Millisecond

// Lock is a lock that is held.
type Lock struct{ file *os.File }

// Release gives the lock back.
func (l *Lock) Release() { _ = l.file.Close() }

// Acquire waits until it has the lock on a file, which it makes where it is
// missing.
func Acquire(ctx context.Context, path string) (*Lock, error) {
	var lock *Lock
	err := poll(ctx, func() (bool, error) {
		var err error
		lock, err = try(path)
		return lock != nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return lock, nil
}

// try gives nil where another process or another Lock has it.
func try(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &Lock{file: file}, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, err
}

func poll(ctx context.Context, step func() (bool, error)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if done, err := step(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
