// Package build makes the programs that the suites and the demo run: the
// control plane, CoreDNS, managers of Cluster API and fleetling itself. They go to
// .cache in the repository, which git ignores.
//
// The control plane takes a quarter of an hour when nothing is cached, so its
// file is named by a hash of all that it is made from, it is built once, and
// progress is shown meanwhile; CoreDNS likewise, in two minutes more, and Cluster
// API's core manager, which pins older versions of Kubernetes' modules and shares
// nothing, in six. Its providers share nearly all with it. Tests don't build them,
// they find them or say what to run: a build inside `go test` would run into its
// time limit in silence. Builds of two processes wait for each other.
package build
