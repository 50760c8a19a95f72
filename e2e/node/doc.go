// Package node stands in for a cluster's scheduler and kubelet: one Node
// object with its Lease, Pods bound to it and reported as running and ready.
// No container runs: no image is pulled, no probe is asked, and
// the addresses of its Pods answer nobody. Whoever shows it to people shows
// them Notice. Where there is more to it than that, a Runtime runs the Pods that
// stay: they are ready while it says that they run, and are removed when it
// has ended them.
//
// It guarantees statuses that are consistent with the Pods' specs, so that
// Deployments, DaemonSets, Jobs and EndpointSlices come out as on a real node:
// restartPolicy Always is running, any other has succeeded; init containers
// have completed, those with restartPolicy Always run; readiness gates count.
// A Pod marked for deletion is removed at once where nothing of it runs.
//
// Two ways to have a Pod that never gets ready, both a real cluster's: a
// nodeSelector that the node's labels don't match leaves it Pending, and an
// image of a host under .invalid (RFC 2606) can't be pulled. Affinity, taints,
// resources and volumes are not looked at.
package node

// Notice is what a person is told who sees Pods of this node.
const Notice = "the node is a fake one: Pods are reported as running and ready, no container runs"
