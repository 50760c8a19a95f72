// Package git carries records in branches of a Git repository.
//
//	refs/heads/members/NAME ──> one commit without parents
//	                              record        sealed
//	                              status        sealed
//	                              parts/HEX     one per part, named by its SHA-256
//
// It needs nothing that is not there already: a repository of its own, on the
// server that has the fleet repository, and credentials that may push to it. It is
// for about fifty members: every reader asks for all branches with every poll.
//
// # Guarantees
//
//   - A put of what is there already sends nothing. Of a changed one only the
//     changed files are sent, as far as Refs does that.
//   - Heads is one request where nothing has changed. Only the branches that have
//     are read, and of those no part.
//   - A member's branch that can't be read, or holds something else than this,
//     concerns that member only: its last good head stays, and Problems says what
//     is wrong. A list that would be empty for such reasons is an error.
//   - Bytes are compared with their digest before they are given out.
//   - Members, files and bytes of each are bounded.
//
// # Decisions
//
//   - The repository is never the fleet repository: who may push there may change
//     every cluster, where branch protection fails once.
//   - Most Git servers can't give each member a right to its own branch only. So a
//     member can overwrite another's branch, and by that hide it; it can't forge
//     it, because records are signed.
//   - The commit is not signed, and its author and time mean nothing.
//   - A branch that is gone is a head that is gone. It is not a withdrawal: that is
//     for the reader to judge.
package git
