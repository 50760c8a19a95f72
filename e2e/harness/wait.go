package harness

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	limit    = 3 * time.Minute
	interval = 100 * time.Millisecond
)

// Eventually calls check until it gives no error. After three minutes, or when
// ctx ends, it gives check's last error.
func Eventually(ctx context.Context, check func(context.Context) error) error {
	var last error
	err := Until(ctx, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		// Cut off by the limit, an error says less than the one before.
		if err == nil || ctx.Err() == nil || last == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

// Until calls step until it says that it is done; an error of its own ends it
// at once. It has Eventually's limit.
func Until(ctx context.Context, step func(context.Context) (done bool, err error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errors.New("not within "+limit.String()))
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if done, err := step(ctx); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
