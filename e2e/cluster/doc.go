// Package cluster gives real Kubernetes control planes to the suites and the
// demo: kube-apiserver and kube-controller-manager as processes, one pair per
// Cluster, over one etcd per Host.
//
//	Host ── etcd (--etcd-prefix per cluster, no fsync)
//	 ├─ Cluster "a" ── kube-apiserver ◄── kube-controller-manager
//	 │                     ▲
//	 │                   Proxy ◄── agent under test
//	 └─ Cluster "b" ── ...
//
// It guarantees behaviour that is the real one: RBAC and Node authorization,
// the default admission plugins, ServiceAccount tokens from the TokenRequest
// API, controllers that run under their own ServiceAccounts. There is no
// scheduler and no kubelet: package node stands in for both.
//
// Decisions. The address in Service default/kubernetes is of a documentation
// range (RFC 5737): validation refuses loopback there, and nothing routes to it.
// The audit log holds every finished request at level Metadata. Everything
// listens on loopback, on ports below those that the kernel gives to outgoing
// connections, so that a port is still free when a paused API server wants it
// back. Processes are killed, not asked: their data dies with the Host. Only a
// test process that is killed itself leaves its folder in TMPDIR, its children
// end with it.
//
// A cluster takes about 430 MB. No more than three of all suites may be alive
// at once: harness.Places hands them out, callers ask.
package cluster
