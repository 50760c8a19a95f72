package trust

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources/gittest"
)

func BenchmarkVerify(b *testing.B) {
	alice := sshKey(b, "alice")
	rsa := gittest.NewSSHKey(b, "alice", "rsa", "-b", "3072")
	for name, s := range map[string]struct {
		commit string
		keys   Signers
	}{
		"ssh-ed25519": {signed(b, payloadAt(noon), alice), signers(b, alice)},
		"ssh-rsa3072": {signed(b, payloadAt(noon), rsa), signers(b, rsa)},
		"pgp-ed25519": {fixture(b, "tools/gpg-2.4.commit"), fixtureKey(b, "tools/gpg-2.4.asc")},
	} {
		b.Run(name, func(b *testing.B) {
			id, raw, p := objectID(s.commit), []byte(s.commit), Policy{Now: noon.Add(time.Minute)}
			b.ReportAllocs()
			for b.Loop() {
				c, err := ParseCommit(id, raw)
				if err == nil {
					_, err = p.Verify(c, s.keys)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReadSigners reads a folder of ten keys of each kind.
func BenchmarkReadSigners(b *testing.B) {
	line, block := sshKey(b, "alice").Line, fixture(b, "tools/sq-1.3-rfc4880.asc")
	var files []keyFile
	for i := range 10 {
		files = append(files, keyFile{fmt.Sprintf("a%d.pub", i), line}, keyFile{fmt.Sprintf("b%d.asc", i), block})
	}
	b.ReportAllocs()
	for b.Loop() {
		if s, _ := parseKeyFiles("signers", files); s.Empty() {
			b.Fatal("no keys")
		}
	}
}

// BenchmarkAdvance walks 1000 commits, each with a tree of its own, the keys
// unchanged.
func BenchmarkAdvance(b *testing.B) {
	const commits = 1000
	alice := sshKey(b, "alice")
	r := newRepo(b)
	setSigners(r, alice)
	first := r.Commit("first", alice)
	repo := load(b, r)
	c := parse(b, raw(b, r, first))
	signer, head := privateKey(b, alice), first
	for i := range commits {
		tree := repo.putTree(c.Tree, fmt.Sprintf("z%d", i))
		head = repo.put(likeGitLab(b, strings.Replace(child(head), emptyTree, tree, 1), signer))
	}
	pin := Pin{Commit: first, PayloadHash: c.PayloadHash, SignedAt: noon}
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		v, err := Policy{Now: noon}.Advance(b.Context(), repo, pin, head)
		require.NoError(b, err)
		if v.Steps != commits {
			b.Fatal(v.Steps)
		}
	}
}
