// Package sharing tests the ClusterSet as a whole: clusters in network namespaces,
// each with the agent that ships, one fleet repository and one registry.
package sharing
