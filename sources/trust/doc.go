// Package trust verifies that a head of the fleet repository is signed
// throughout, by keys that the repository itself names.
//
//	ReadSigners  a folder of keys          -> Signers
//	ParseCommit  stored bytes              -> Commit, in the one form it can have
//	Verify       a commit, signers, policy -> who signed it, or why not
//	Introduce    no pin, a head            -> Verified: the first pin
//	Advance      a pin, a newer head       -> Verified: the next pin
//
// It guarantees: of a head that is taken, every commit on the first-parent line
// from the pin (or the first commit) is signed by a key in signers/ of its own
// first parent, or is a merge that adds nothing to such a commit; and the head
// descends from the pin. A head is taken whole or refused with the first reason
// that holds, the commit, the key and what to do. It is pure: the time is an
// argument, commits and trees come through Repository, and a failure to read is
// an error without a reason, never a verdict and never "no keys".
//
// It refuses: what git could read in another way than we (doubled or misplaced
// headers, control bytes); signatures in a form that no known tool writes; SHA-1,
// DSA, RSA under 2048 bits, curves other than Ed25519 and NIST's; certificates,
// X.509; text signatures; a security key that nobody touched.
//
// # Decisions
//
// The stored bytes are hashed and parsed here, against the id: an object store
// that gives other bytes is found out. Nothing is ever encoded again to verify it.
//
// The known key is looked up by the fingerprint that the signature names before
// any arithmetic, and the arithmetic is done with the key from signers/, not with
// one from the signature. GitHub's signatures name only a 64-bit id, within what
// they cover; it finds the key, the arithmetic proves it.
//
// go-crypto's v2 API parses keys and does the arithmetic, not more: its verdict on
// a key depends on the time of the first question (it caches), on map order, and
// on the signer's clock. So a key is judged once, when it is read, into plain data:
// newest self-signature, any valid revocation for ever, no SHA-1 in either. A key
// that revokes itself counts as readable: falling back from it to an older set
// would undo the revocation. A weak key does not.
//
// An OpenPGP signature's own time counts, and is not compared with the
// committer's: git rebase keeps or sets dates as it is told, and both times are the
// choice of whoever signs. For SSH the committer's time counts.
//
// An expired key may not sign from before the pin. Within one walk each verified
// commit is the floor for the next, and Pin.SignedAt is the latest time so far,
// so that a cluster's verdict does not depend on how often it polls. Without a pin
// there is no floor: a cluster is born with a head that an expired key signed.
//
// Where the head is the pin, only a revocation since then is looked for: the
// signature is verified again by the parent's signers, with and without
// trust.revoked. The pin of an introduction was proven by first signers that are no
// longer given; its signature is taken at its word, which was proven then. Neither
// the clock nor a key that ran out since changes anything for a pinned head. The way
// out of RevokedKey is a commit on top of it by another signer.
//
// A merge by a forge's button may carry any signature or none, but a canonical one.
// It is judged by its second parent, also at an introduction: else no cluster could
// be born while such a merge is the head. Anybody can make such a merge, so that the
// host could serve one cluster another one than the others, or leave it out, and
// lock that cluster out at the next commit; hence a merge that adds nothing to the
// pin counts as the pin, and so does one with the pin's own parents and tree, if the
// pin adds nothing either.
//
// # Canonical form
//
// By sample (testdata/README.md). The signature's header is the last one: git, the
// forges and Jujutsu write it there. Free choices that stay, because tools make them
// or don't normalise: width 70 or 64 of an SSH armor, an empty last line, an OpenPGP
// checksum or none, old or new packet header, the issuer's id outside of what is
// covered or nothing there, leading zeros of RSA numbers (GitHub), s or n-s of
// ECDSA. A twin made by one of these has another id and the same PayloadHash, by which
// the pin is found. The two digest bytes of an OpenPGP signature have to be right, as
// they are in GitHub's since the middle of 2021.
//
// # Beside git verify-commit
//
// Stricter: TestOurVerdictBesideThatOfGit names each case. Looser: a key that has
// expired since it signed (git's gpg judges expiry now), and version 6 keys where git
// runs a gpg that can't read them. valid-after and valid-before without zone are UTC,
// where ssh-keygen takes local time.
package trust
