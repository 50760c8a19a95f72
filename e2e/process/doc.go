// Package process runs the programs that the suites and the demo start:
// etcd, API servers, agents.
//
// It guarantees that nothing stays behind: a child is ended by its own process
// id, never by a name, and the kernel ends it when the process that started
// it dies, however it dies. Output goes to a file, whose last lines are
// part of every error. It refuses to share an environment by accident: a
// Command says which one it wants.
package process
