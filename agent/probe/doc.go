// Package probe answers Kubernetes' probes over a unix socket in the data folder.
//
//	kubelet --exec--> fleetling probe [--ready] --DATADIR/probe.sock--> the agent
//
// A Pod on the node's network has no port to itself, so it is asked by exec. The
// socket is the agent's alone (mode 0600), and nothing is sent to it but the
// question.
//
// The path of a unix socket may have 107 bytes, and a data folder may be deeper:
// so the folder is opened, and the socket reached through its descriptor.
package probe
