// Package birth gives clusters that Cluster API gives birth to, without a
// provider and without a container engine: what is between "a Cluster was
// applied" and "its agent runs" is the real one.
//
//	`fleetling capi render` ──► Management: kube-apiserver ◄── core manager v1.14, its webhooks
//	                                                                 │ ClusterResourceSets
//	                            workload:   kube-apiserver ◄─────────┘
//	                                             │ Pod of the delivered Deployment
//	                                          Kubelet ──► `fleetling agent`
//
// What is not: the infrastructure is a kind of one object that says it is
// provisioned, and a workload cluster is a control plane that runs already.
// Kubelet stands in for kubelet: it takes the Pods that
// kube-controller-manager made of the Deployment, not the Deployment, so that
// admission has its say, and writes to their status what the readiness probe
// says. An image is a program. A container is a process in a mount namespace of
// its own, in which /etc, /var and nothing else are the Pod's, under the Pod's user,
// without capabilities; the root file system is this machine's, and the network
// too, as hostNetwork says.
//
// One suite has providers after all: StartProviders runs kubeadm's two, bootstrap
// and control plane, and the Docker provider with its in-memory backend, whose
// machines are objects and whose API servers are its own: they keep what they are
// given, run nothing, and take neither server-side apply nor a Lease. So the agent
// can't run there; the bundle can come there, in between the steps of a control
// plane that is being made. No container engine is needed. Without one the Docker
// provider prints an error now and then: it asks the engine for the capacity of
// every machine template, and nothing here waits for that. It listens on all
// addresses, and on port 19000 always: one such provider fits on a machine.
//
// Decisions. The manager's CRDs and webhook configurations are read from the
// module that it is built from, and not kept here. Webhooks are reached by URL,
// for there is nothing that routes to a Service. The manager listens for them on
// all addresses of the machine, there is no option for one; what it answers
// there is admission, by a certificate of its own.
package birth
