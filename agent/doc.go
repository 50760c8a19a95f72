// Package agent is the daemon: it makes one cluster what its signed fleet
// repository says, and tells what it found in Member and AddOn.
//
//	source loop   identity, remote branch  -> findings      every interval, and when asked
//	pass loop     findings, live objects   -> changes, status   when either has changed
//
// Both are reconcilers of one thing, so each has one goroutine. The source loop
// writes nothing: what it verified reaches the cluster only by the pass loop,
// which keeps pin and snapshot before it applies. So a Git server that hangs
// delays nobody's repair, and a pass is always of one verified revision.
//
// Nothing here is an input but the configuration file, the identity, the pause and
// the annotation fleetling.dev/reconcile-at on member/self, and the deletion of
// the pin, which asks to be introduced again.
//
// # Decisions
//
// A bad image never replaces a good Pod. So the Deployment is a RollingUpdate that
// takes no Pod away before the next one is ready, and ready is: this process has
// fetched and verified a revision, and planned what it wants of this cluster. A
// Pod that waits for the Lease shows that by a rehearsal, whose result is thrown
// away; only the Lease's holder writes. Recreate would take the good Pod first;
// readiness by the Lease would wait for ever. Once ready a process stays so: a
// silent Git server is no reason to replace it. Alive is: no turn of a loop lasts
// longer than all its deadlines together.
//
// While the pause holds, passes look and do not touch. Pin and snapshot are kept
// on: they say what is verified, and a pause is no reason to take an older head
// for new. Sharing goes on: it is not of Git.
package agent

// Namespace holds all that the agent keeps in the cluster.
const Namespace = "fleetling-system"
