// Package harness is what the suites and the demo share: it finds the control
// plane, hands out the machine's places for clusters, builds the binary that
// ships, runs it as a process that can be killed, and waits for things to
// become true.
//
// Waits have one generous limit, because the machine may be busy with a build:
// suites assert order, counts and state, never durations.
package harness
