// Package world puts the parts together that suites and demo need: a signed
// fleet repository on a Git server, and clusters that follow it, each a real
// control plane with a fake node and the agent that ships, as a process, under
// the rights that manifests/ gives it.
package world
