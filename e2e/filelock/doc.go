// Package filelock makes processes of one machine wait for each other: `go
// test` runs the suites of several packages as processes side by side, and
// they share a build folder and the machine's memory.
//
// A lock is a flock(2) on a file: the kernel gives it back when its holder dies.
package filelock
