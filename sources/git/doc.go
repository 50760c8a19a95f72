// Package git reads one branch of a remote repository that nobody trusts, and, for
// whoever needs a registry, all branches below a prefix (Refs).
//
//	Remote ──resolve──> head ──receive──> pack ──scan, index, closure──> Dir ──Open──> Repository
//	 https, ssh          ls-remote         bounded                       on disk        commits, trees
//
// Fetch asks for one branch by its full name, and brings what is missing of it
// into a bare repository on disk. Refs does so with many branches, and pushes to
// one, over the same transports by the same rules. Repository gives the raw bytes
// of commits, for somebody to verify, and trees as read-only file systems. Nothing
// is ever checked out.
//
// # Guarantees
//
//   - An error is an error, with one reason and a sentence that says what to do. It
//     never holds a credential, a query or a user of the URL, or what a server
//     wrote. Only what is not in a tree is fs.ErrNotExist; what was committed and
//     can't be used is fs.ErrInvalid.
//   - What is in Dir is complete: all that the head needs, back to the first
//     commit, is there before the head is set. Every object is compared with its
//     id when it comes, and again whenever it is read.
//   - Bytes on the wire, the number of objects and of refs, the size of an object,
//     the length of chains of deltas, and time are bounded; so is memory, to a few
//     objects of the largest size and an index of the objects.
//   - Fetch returns when its context ends, wherever the server stalls, and nothing
//     of it runs on.
//   - Killed at any moment, it leaves a folder that the next Fetch uses or replaces.
//     So does damage, once it is found: by Fetch in what is cheap to look at (ends
//     of files, list of packs, indexes), by Repository in what it reads.
//   - Credentials are sent to the URL's scheme, host and port only.
//   - Of many branches, one that can't be had keeps the commit that it had, and
//     holds up no other. Refs brings and pushes only objects that the last commit
//     of that branch does not have, and what it keeps on disk does not grow with
//     the number of pushes.
//
// # Refusals
//
// Schemes other than https, ssh and, without credentials, http. Redirects to
// another scheme, host or page. Unknown host keys, certificates and TLS below 1.2.
// Shallow and partial repositories. Submodules, Git LFS pointers, links out of the
// tree, and names that a terminal or a file system could take for something else:
// where a path is used, not where it is merely there. SHA-256 repositories.
//
// # Decisions
//
//   - go-git's low-level parts do the protocol. Its Remote, its worktree, its
//     storage and its registry of protocols are not used: they read ~/.ssh,
//     SSH_AUTH_SOCK and the environment, follow refs, and have no bounds.
//   - For ssh not even go-git's transport: it dials by itself (through ALL_PROXY)
//     and stops listening to the context until refs come. Owning the connection
//     is the only way to end it.
//   - Packs are indexed here. go-git's Parser, and its Packfile when it reads,
//     hold all of a chain of deltas at once, so that a pack of some hundred KiB
//     can take 32 GiB. A chain may also handle no more than 64 objects of the
//     largest size, because each read of its end handles all of it again.
//   - A pack is never thin: each stands alone. After fifty packs a fresh clone
//     makes one of them, so there is no repacking here. It has what the server
//     now has; what the caller verified before, the caller keeps.
//   - Whatever may be mended by a fresh clone is tried once more as one, within
//     the same Fetch: a branch that moved between two requests, a server that
//     lost what we have, an answer that can't be read, damage on disk.
//   - Refs rewrites its packs as one, of what the branches still need, when there
//     are fifty, or when the newer ones outweigh the first. No clone: with fifty
//     members that would be all of them, every few minutes.
//   - Git leaves out the files of a commit that the other side has only where the
//     new one descends from it. A branch of Refs has no history, so its last
//     commit is also said to be where our history is cut off: then git looks into
//     its files too, but answers with a thin pack, to which the missing bases are
//     added on disk.
//   - Which of many branches is in the way is found by halves. One that is too big
//     is not asked for again before it is another commit; what the server can't
//     give now, it may give next time.
//   - A push is whole objects, without deltas: records and parts are small.
//   - ca.crt is added to the system's certificates, as in Flux, whose key names
//     these are. What protects the content is the signature, not TLS.
//   - The user of ssh is the URL's, else git. A passphrase of identity stands in
//     password, as in Flux. A proxy is for https and http.
//   - Links are listed as links and followed when read, like os.DirFS, and unlike
//     it can't leave the root: there is nothing but tree objects.
//   - A file system counts each path once against its limits, however often it is
//     read: a base that ten overlays share is one base. Listed folders count by
//     their entries against Files too, because a tree of 100 objects can hold
//     10^9 paths.
package git
