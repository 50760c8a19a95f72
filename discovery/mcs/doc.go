// Package mcs makes Services of the ClusterSet out of what its members export:
// the whole of KEP-1645 (Multi-Cluster Services API), for one cluster.
//
//	observe    ServiceExport, Service, EndpointSlices  -> Share, or why not     pure
//	decide     Merge: all members' Shares of a Service -> Import                pure
//	           Import -> ServiceImport, derived Service, EndpointSlices         pure
//	act        Importer: applies what differs, removes what is not wanted
//	report     ServiceExport: Valid, Ready, Conflict
//
// # Guarantees
//
// Every member decides by itself, from the same data, to the same result: there
// is no aggregate that anybody shares. A member's own export takes part like any
// other, and its endpoints are imported from itself too.
//
// Traffic to a port reaches only members that export that port. A slice carries
// the ports of its member under the import's names, and not those that lost.
//
// What is not known is not taken away. While it is not known of a peer that has a
// part in an import whether it still exports, that import stands as it is, and
// the slices of such peers do. Endpoints of a peer that is late become not ready, but never the last
// ready ones of a port.
//
// Local Services, and objects that this package has not made, are not touched:
// one that stands where an import belongs is an event and an error. Nothing is
// written for what has not changed, and nothing in a namespace that does not
// exist.
//
// # Decisions
//
// The oldest export wins a conflict, then the cluster that comes first by name,
// at any time: when the winner withdraws, the next one wins. KEP-1645 would let
// the old settings stand; then two clusters that joined at different times would
// disagree.
//
// Exported labels and annotations are one value each: the winner's, whole.
//
// Ports of different members are one port if protocol and number are the same;
// its name is the older export's. A port without a name gets one, such as tcp-80,
// where there are others, since a Service must not have it otherwise.
//
// The IP families of an import are those that all exports have in common. Over
// another one a client would reach some of the backends only, and a headless
// Service must have the same subset under A and AAAA. Where there is none in
// common, it is a conflict, and the younger export's endpoints are left out.
//
// The address is that of a derived Service with the name that the MCS API's
// reference gives it, so that whatever implements Services implements imports. A
// headless import has none: CoreDNS answers from the slices, by their labels
// service-name and source-cluster, and a Service would only add a second name.
// A change of type is therefore a Service made or removed, never one whose
// clusterIP would have to change.
//
// A slice's label kubernetes.io/service-name is that of the derived Service.
// nodeName does not travel, the own endpoints' no more than the others', so that
// with internalTrafficPolicy Local, which means this node, an import has no
// endpoints: clients that want it use the Service of their own cluster.
//
// One field manager writes each object, by server-side apply: load balancers and
// service meshes put annotations of their own on Services, and keep them. A hash
// of what was applied stands in an annotation: without it, a field that is no
// longer wanted could not be told from one that somebody else has added.
//
// An object whose label says that it is ours is ours; who takes the label off a
// ServiceImport or a derived Service has taken it over.
package mcs
