// Package gittest makes real Git repositories, with the git binary, for tests
// and for the demo: signed commits by keys made at run time, and servers for
// the transports that sources/git speaks. Only tests and e2e/ import it.
package gittest

// T is what this package needs of *testing.T. The demo, which is no test,
// brings its own.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	TempDir() string
	Cleanup(func())
}
