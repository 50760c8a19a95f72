// Package clusterset gives clusters that have a network: what the suites of
// multi-cluster services run on.
//
//	Set ── network.Network, the site "hub" in it
//	 ├─ Cluster "eu" ── site "eu" ── kube-proxy (nftables), CoreDNS, Pods
//	 │        └─ API server on loopback, at the same address inside the site
//	 └─ Cluster "us" ── ...
//
// kube-proxy and CoreDNS are the real ones and see what a node's would. Pods are
// processes with their own addresses, see package pods for which. A program that
// belongs to a cluster, such as the agent, is started in the namespace
// Cluster.Site.Name(): it has its API server on loopback, whatever is cut, and
// all else over links.
//
// Servers of the test process, such as Git's or a registry's, are made part of the
// hub by Publish: a cluster that is cut off from the hub is cut off from them.
//
// Decisions. The clusters' DNS is the site's own address, port 53, not a Service's
// address: one part less between a lookup and its answer. CoreDNS caches nothing. The CustomResourceDefinitions of
// the MCS API must be there when CoreDNS starts, for it to be ready: whoever starts a Set
// gives them.
package clusterset
