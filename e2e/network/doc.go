// Package network makes networks that can be cut: sites, each a network
// namespace of Linux with a range of Pod addresses, and a link between every two.
//
//	site "hub" 172.16.0.1 ──── site "eu" 172.16.1.1 ── Pod 172.16.1.2
//	        │                      │                └─ Pod 172.16.1.3
//	        └──────── site "us" 172.16.2.1 ── Pod 172.16.2.2
//
// Nothing of it touches the machine's own interfaces, routes or rules: a site
// reaches a server of the test process by Forward, a socket inside the
// namespace whose connections are handed on to loopback. So a client has one and
// the same loopback address for its API server inside and outside, and that
// address is never cut; everything else that a site can reach is at the
// other end of a link.
//
// Decisions. A link is a veth pair without addresses of its own, routed onlink to
// the other site's address. Every two sites have their own, and no site routes for a
// third: what is cut between two can't go round. Loss is a rule of nftables that
// drops silently what comes in at both ends, the connections that stand
// too: that is what a partition looks like, and netem is not in every kernel. A Pod has
// an address of /32 and a route to its site, as with the CNI plugin ptp: no bridge,
// so that what a Pod sends to a Service is seen by the site's rules both ways.
//
// Namespaces are named by the process that owns them, fleetling-PID-START-...,
// and end with Network.Remove. What a killed process has left is removed by the
// next New; that of a process that still runs is left alone. It needs root, ip(8)
// and nft(8).
package network
