package world

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/fleetling/fleetling/sources/gittest"
)

var _ gittest.T = (*Scope)(nil)

// Scope is what a testing.T is for a test where there is none: what was made in
// it is undone at its end, in reverse order, and Fatalf panics with a Fatal.
type Scope struct {
	mu       sync.Mutex
	cleanups []func()
}

// Fatal is what Fatalf panics with.
type Fatal string

// Helper does nothing.
func (*Scope) Helper() {}

// Fatalf ends what calls it, in its own goroutine.
func (*Scope) Fatalf(format string, args ...any) { panic(Fatal(fmt.Sprintf(format, args...))) }

// TempDir gives a new folder that is gone at the end.
func (s *Scope) TempDir() string {
	dir, err := os.MkdirTemp("", "fleetling-world-")
	if err != nil {
		s.Fatalf("temporary folder: %v", err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Cleanup has f called at the end.
func (s *Scope) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

// CleanUp undoes everything.
func (s *Scope) CleanUp() {
	s.mu.Lock()
	cleanups := s.cleanups
	s.cleanups = nil
	s.mu.Unlock()
	for _, f := range slices.Backward(cleanups) {
		f()
	}
}
