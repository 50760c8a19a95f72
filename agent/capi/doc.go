// Package capi packs the agent for Cluster API: from cluster entries and our
// manifests to the objects that a management cluster needs, so that every new
// workload cluster is born with an agent that knows its name.
//
//	manifests + birth ── Load ──> Install ──┐
//	                                        ├─ Bundle ──> ClusterResourceSets and ConfigMaps
//	fleetling.yaml, entries ──── Entries ───┤
//	                                        └─ Secrets ─> the same for credentials, apart
//	any bundle ── Read ──> Lint ──> findings
//
// It is pure: file systems and values in, objects and findings out; the same
// input gives the same bytes. It guarantees that what Bundle and Secrets give has
// no finding of Lint, that each identity is one which the agent would accept, and
// that no error holds a value of a Secret. It refuses entries that have a
// problem, and a Cluster whose label fleetling.dev/cluster names another one.
//
// # What is sent
//
// Per namespace of the management cluster one ClusterResourceSet ApplyOnce with
// the agent, for all Clusters that have the label fleetling.dev/cluster; per
// cluster one with strategy Reconcile and the identity, chosen by the label's
// value; per cluster that has any, a third one with its credentials. ApplyOnce,
// because Reconcile nulls every field that the manifest lacks and would undo what
// Git does to the agent later. Credentials have a set of their own, so that the
// file that holds no secret is complete, and the same, with and without them. A
// set lists its sources and becomes their owner: deleting it deletes them, and
// nothing in the workload cluster.
//
// # Decisions
//
//   - The manifests are not in the binary. manifests/ is YAML only, go:embed can't
//     reach up, and a copy would be a second truth. Who installs has a checkout
//     anyway, to write the overlay that plain Kubernetes needs: Load takes its
//     folder and lays manifests/birth over it with our own renderer. An overlay of
//     one's own goes in as the text that `kubectl kustomize` prints, by Read.
//   - The label is the consent: an entry without fleetling.dev/cluster is a cluster
//     that Cluster API did not make, and is left out.
//   - The namespace is the entry's metadata.namespace: a ClusterResourceSet sees
//     only Clusters and sources of its own namespace.
//   - One key per ConfigMap: keys are applied in alphabetical order, and within one
//     key Cluster API sorts kinds itself.
//   - What is added to config.yaml loses its comments: it is read, changed and
//     written again, not patched as text.
//   - Two sets select a Cluster at once and nobody orders them: an identity may
//     come before the Namespace and is then sent again by Cluster API's retry. The
//     Namespace is not repeated in the identity's set: Reconcile would null labels
//     that others put on it.
//   - New avoids service ranges too, and writes the cluster's own into the entry:
//     importers refuse endpoints in their own service range, and pods that share
//     one with Services can't be reached.
//   - Lint takes a selector by a label without a prefix (tier, region) for a
//     mistake: people edit these, and a ClusterResourceSet never takes back what it
//     has sent.
//   - txtar.FS holds the one file that New adds to a repository in memory: the
//     standard library has such a file system for tests only.
package capi
