package main

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/fleetling/fleetling/sources/gittest"
)

var _ gittest.T = (*scope)(nil)

// scope is for the demo what a testing.T is for a test: what was made in it is
// undone at its end, in reverse order, and Fatalf ends the step.
type scope struct {
	mu       sync.Mutex
	cleanups []func()
}

// fatal is what Fatalf panics with.
type fatal string

// Helper does nothing.
func (*scope) Helper() {}

// Fatalf ends the step that calls it, in the step's own goroutine.
func (*scope) Fatalf(format string, args ...any) { panic(fatal(fmt.Sprintf(format, args...))) }

// TempDir gives a new folder that is gone at the end.
func (s *scope) TempDir() string {
	dir, err := os.MkdirTemp("", "fleetling-demo-")
	if err != nil {
		s.Fatalf("temporary folder: %v", err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Cleanup has f called at the end.
func (s *scope) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

// cleanUp undoes everything.
func (s *scope) cleanUp() {
	s.mu.Lock()
	cleanups := s.cleanups
	s.cleanups = nil
	s.mu.Unlock()
	for _, f := range slices.Backward(cleanups) {
		f()
	}
}
