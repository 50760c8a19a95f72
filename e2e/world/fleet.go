package world

import (
	"github.com/fleetling/fleetling/sources/gittest"
)

// Fleet is a fleet repository and the server that has it.
type Fleet struct {
	*gittest.Repo
	// Key is the first signer's.
	Key    gittest.Key
	Server *gittest.HTTPServer
}

// NewFleet makes a fleet repository with one signer, and serves it over http on
// loopback. Nothing is committed yet.
func NewFleet(t gittest.T) *Fleet {
	t.Helper()
	f := &Fleet{Repo: gittest.NewRepo(t), Key: gittest.NewSSHKey(t, "founder", "ed25519")}
	f.Write("signers/"+f.Key.File(), f.Key.Public())
	f.Server = gittest.ServeHTTP(t, f.Dir, gittest.HTTPOptions{})
	return f
}

// Push commits the working copy, signed by the first signer. What is committed
// is what the server serves.
func (f *Fleet) Push(message string) string { return f.Commit(message, f.Key) }
