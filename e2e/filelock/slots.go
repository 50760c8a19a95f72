package filelock

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
)

// Slots is a number of places that all processes of the machine share, for
// things of which only so many fit.
type Slots struct {
	// Dir holds one file per place.
	Dir string
	// Count is how many places there are.
	Count int
}

// Acquire waits until it has n places at once, and gives what gives them back.
// It never holds some while it waits for more, so two that wait for two each
// can't block each other.
func (s Slots) Acquire(ctx context.Context, n int) (func(), error) {
	if n > s.Count {
		return nil, fmt.Errorf("slots %s: %d asked for, there are %d", s.Dir, n, s.Count)
	}
	var held []*Lock
	err := poll(ctx, func() (bool, error) {
		var err error
		held, err = s.try(n)
		return held != nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("slots %s: %w", s.Dir, err)
	}
	return func() { releaseAll(held) }, nil
}

// try takes n places or none.
func (s Slots) try(n int) ([]*Lock, error) {
	held := make([]*Lock, 0, n)
	for i := range s.Count {
		if len(held) == n {
			break
		}
		lock, err := try(filepath.Join(s.Dir, strconv.Itoa(i)))
		if err != nil {
			releaseAll(held)
			return nil, err
		}
		if lock != nil {
			held = append(held, lock)
		}
	}
	if len(held) < n {
		releaseAll(held)
		return nil, nil
	}
	return held, nil
}

func releaseAll(locks []*Lock) {
	for _, lock := range locks {
		lock.Release()
	}
}
