// Package desired is the one way from a repository to what a cluster should be,
// for the daemon and for every command:
//
//	Fetch   the remote branch             -> a head, on disk
//	Verify  head, pin or first signers    -> a verified revision, or why not
//	Want    revision, identity            -> the add-ons of this cluster, rendered
//	FromTree does what Want does, on any tree: a working copy, a pull request
//
// Each step gives a value. An add-on that can't be rendered carries its error
// and leaves the others alone; what can't be selected is one error for all.
package desired
