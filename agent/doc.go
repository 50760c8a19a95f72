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
// Nothing here is an input but the configuration file, the mounted identity, the
// annotation fleetling.dev/reconcile-at on member/self, and the deletion of the
// pin, which asks to be introduced again.
package agent

// Namespace holds all that the agent keeps in the cluster.
const Namespace = "fleetling-system"
