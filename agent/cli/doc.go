// Package cli holds the commands of the fleetling binary. They print results on
// standard output and say what goes wrong on standard error. Exit codes: 0 good,
// 1 not good, 2 could not tell.
package cli
