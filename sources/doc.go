// Package sources holds the words that the packages below it share: what goes
// wrong (Error, Reason), how much is too much (Limits).
//
// The way from a remote branch to Kubernetes objects, one package per verb:
//
//	sources/git     fetch    remote branch         -> commits and trees on disk
//	sources/trust   verify   commits, signers      -> the head is ours, or why not
//	sources/fleet   select   fleetling.yaml, labels -> the add-ons of this cluster
//	sources/render  render   a path in the tree    -> objects
//
// None of them knows the others, Kubernetes clients or the agent: they meet in
// agent/desired through fs.FS, plain values and small functions.
//
// Every failure that a person can mend is an *Error: a reason from the list
// below, the file and line in the fleet repository, the object, and a sentence
// that says what to do. An error never means "nothing to install".
package sources
