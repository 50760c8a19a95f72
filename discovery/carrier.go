package discovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// Digest is "sha256:" and 64 lower-case hexadecimal digits over some bytes.
type Digest string

// DigestOf gives the digest of data.
func DigestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest("sha256:" + hex.EncodeToString(sum[:]))
}

// ErrNotFound is that a carrier does not have what was asked for. Whoever runs a
// carrier can say so of anything: it is never a withdrawal.
var ErrNotFound = errors.New("not in the registry")

// Own is all that a member has in the registry. What is not in it any more is
// taken out.
type Own struct {
	// Record and Status are sealed; nil is none.
	Record, Status []byte
	// Parts are the endpoint parts that Record names.
	Parts map[Digest][]byte
}

// Head is what a carrier says that a member has put. It is a claim: only the
// signature in the bytes says who wrote them.
type Head struct {
	Member string
	// Record and Status are digests of the sealed bytes; empty is none.
	Record, Status Digest
}

// Carrier is where members put their records and read the others'. It is not
// trusted: it may hide, delay and replay, and that is all it can do.
type Carrier interface {
	// Put replaces what this carrier's own member has put. What has not changed
	// is not sent again.
	Put(ctx context.Context, own Own) error
	// Heads lists all members that have put something, sorted by name. An error
	// is never an empty list.
	Heads(ctx context.Context) ([]Head, error)
	// Get gives the bytes with this digest, which it checks, of what a member has
	// put: record, status or part. ErrNotFound where it has none.
	Get(ctx context.Context, member string, digest Digest) ([]byte, error)
}

// Watcher is a carrier that tells of changes by itself.
type Watcher interface {
	// Watch calls changed for every head that is new or has changed, one after
	// the other, until ctx ends; one that was taken out has no digests. It connects again by itself; an error is one that
	// trying again can't mend.
	Watch(ctx context.Context, changed func(Head)) error
}
