// Package pods runs the containers of Pods as processes on this machine: the
// part of a kubelet that package node leaves out. A Pod has a network namespace
// at its cluster's site, with the Pod's address; each container is its command,
// run from the machine's own programs in a PID namespace of its own.
//
// It refuses more than it runs. Nothing is pulled and nothing confined: a process has the
// machine's files and this process' rights. So only images whose programs
// Debian has too are run (alpine/socat, nicolaka/netshoot, of any tag), which the MCS
// conformance suite uses; Pods of others, those of the host's network and those that
// don't restart are left to the node, which says that they run. Init
// containers, volumes, probes, working directories and security contexts are not
// looked at; an environment variable from elsewhere than the Pod is an error.
//
// A container that ends is started again after a second, and its Pod isn't ready
// meanwhile. At its end all of its processes are asked, then killed after the grace: in a
// container only the first would be asked, and shells ignore that.
package pods
