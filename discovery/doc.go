// Package discovery shares exported Services among the members of a ClusterSet
// (KEP-1645), without a hub.
//
//	ServiceExport, Service, EndpointSlices
//	      │ mcs: observe
//	      ▼
//	   record ── seal ──> Carrier ──> heads, bytes ──> peer: judge, contain
//	   (signed by us)     (trusted by nobody)                │ shares
//	                                                         ▼
//	   ServiceImport, derived Service, EndpointSlices <── mcs: merge
//
// This package has the words that all of it shares: digests and the Carrier.
package discovery
