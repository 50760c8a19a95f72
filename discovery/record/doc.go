// Package record is what members of a ClusterSet tell each other, and its
// encoding.
package record
