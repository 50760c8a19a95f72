package trust

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/gittest"
)

func dirFS(r *gittest.Repo) fs.FS { return os.DirFS(r.Dir) }

// branch makes commits on a branch of its own, one by each key, nil for none,
// and gives the last one.
func (f *fleet) branch(name string, keys ...gittest.Key) string {
	f.t.Helper()
	f.Git("checkout", "--quiet", "-b", name)
	for i, k := range keys {
		f.Write("addons/"+name+".yaml", strings.Repeat("x", i+1))
		f.Commit(name, k)
	}
	return f.Head()
}

// button merges id into main as a forge's button does: without a key of ours.
func (f *fleet) button(id string, args ...string) string {
	f.t.Helper()
	f.Git("checkout", "--quiet", "main")
	f.Git(append(args, "merge", "--quiet", "--no-ff", "--message", "Merge", id)...)
	return f.Head()
}

func TestAMergeThatAddsNothingNeedsNoSignature(t *testing.T) {
	alice, forge := sshKey(t, "alice"), sshKey(t, "forge")
	t.Run("of one signed commit", func(t *testing.T) {
		f := newFleet(t, alice)
		v := f.takes(f.button(f.branch("topic", alice)), 1)
		assert.Equal(t, "alice", v.Signer.Name)
		assert.Equal(t, noon, v.SignedAt)
	})
	t.Run("of a branch whose last commit is signed", func(t *testing.T) {
		f := newFleet(t, alice)
		f.takes(f.button(f.branch("topic", nil, forge, alice)), 1)
	})
	t.Run("of a branch that merged main before", func(t *testing.T) {
		f := newFleet(t, alice)
		f.branch("topic", alice)
		f.Git("checkout", "--quiet", "main")
		f.Write("addons/main.yaml", "x")
		f.Commit("main goes on", alice)
		f.Git("checkout", "--quiet", "topic")
		f.Git("merge", "--quiet", "--no-edit", "main")
		f.takes(f.button(f.Commit("sign it", alice)), 2)
	})
	t.Run("signed by a key that nobody knows", func(t *testing.T) {
		f := newFleet(t, alice)
		args := []string{"-c", "gpg.format=ssh", "-c", "user.signingKey=" + forge.Private, "-c", "commit.gpgSign=true"}
		head := f.button(f.branch("topic", alice), args...)
		require.Contains(t, raw(t, f.Repo, head), "\ngpgsig ")
		f.takes(head, 1)
	})
	t.Run("and the next commit is judged by its keys", func(t *testing.T) {
		f := newFleet(t, alice)
		f.Git("checkout", "--quiet", "-b", "topic")
		setSigners(f.Repo, forge)
		f.Commit("topic", alice)
		f.button("topic")
		f.takes(f.Commit("by the new key", forge), 2)
		bad := f.Commit("by the old key", alice)
		f.refuses(bad, bad, sources.UnknownKey)
	})
	t.Run("at the introduction", func(t *testing.T) {
		f := newFleet(t, alice)
		head := f.button(f.branch("topic", alice))
		v, err := introduce(t, f.Repo, Introduction{Signers: signers(t, alice)}, head)
		require.NoError(t, err)
		assert.Equal(t, "alice", v.Signer.Name)
		_, err = introduce(t, f.Repo, Introduction{Signers: signers(t, forge)}, head)
		assert.Equal(t, sources.Unsigned, sources.ReasonOf(err))
	})
}

// B25: a forge's merge of what nobody signed, or that is more than the branch.
func TestAMergeThatAddsSomethingIsRefused(t *testing.T) {
	alice, mallory := sshKey(t, "alice"), sshKey(t, "mallory")
	refused := func(t *testing.T, want sources.Reason, make func(f *fleet) string) {
		t.Helper()
		f := newFleet(t, alice)
		head := make(f)
		f.refuses(head, head, want)
	}
	t.Run("of an unsigned commit over a signed one", func(t *testing.T) {
		refused(t, sources.Unsigned, func(f *fleet) string { return f.button(f.branch("topic", alice, nil)) })
	})
	t.Run("of a commit by an unknown key", func(t *testing.T) {
		refused(t, sources.Unsigned, func(f *fleet) string { return f.button(f.branch("topic", mallory)) })
	})
	t.Run("of a commit by a key that the branch itself brings", func(t *testing.T) {
		refused(t, sources.Unsigned, func(f *fleet) string {
			f.Git("checkout", "--quiet", "-b", "topic")
			setSigners(f.Repo, mallory)
			f.Commit("keys", alice)
			return f.button(f.Commit("by mallory", mallory))
		})
	})
	t.Run("of a branch that main has left behind", func(t *testing.T) {
		refused(t, sources.Unsigned, func(f *fleet) string {
			topic := f.branch("topic", alice)
			f.Git("checkout", "--quiet", "main")
			f.Write("addons/main.yaml", "x")
			f.Commit("main goes on", alice)
			return f.button(topic)
		})
	})
	t.Run("with the tree of a branch that main has left behind", func(t *testing.T) {
		refused(t, sources.Unsigned, func(f *fleet) string {
			topic := f.branch("topic", alice)
			f.Git("checkout", "--quiet", "main")
			main := f.Commit("main goes on", alice)
			return f.Git("commit-tree", "-m", "Merge", "-p", main, "-p", topic, topic+"^{tree}")
		})
	})
	t.Run("with a file more", func(t *testing.T) {
		refused(t, sources.Unsigned, func(f *fleet) string {
			topic := f.branch("topic", alice)
			f.Write("addons/evil.yaml", "x")
			f.Git("add", "--all")
			return f.Git("commit-tree", "-m", "Merge", "-p", f.pin.Commit, "-p", topic, f.Git("write-tree"))
		})
	})
	t.Run("with the parents in the other order", func(t *testing.T) {
		f := newFleet(t, alice)
		topic := f.branch("topic", alice)
		head := f.Git("commit-tree", "-m", "Merge", "-p", topic, "-p", f.pin.Commit, topic+"^{tree}")
		f.refuses(head, head, sources.Unsigned)
	})
	t.Run("of two branches at once", func(t *testing.T) {
		refused(t, sources.Unsigned, func(f *fleet) string {
			topic := f.branch("topic", alice)
			other := f.branch("other", alice)
			return f.Git("commit-tree", "-m", "Merge", "-p", f.pin.Commit, "-p", other, "-p", topic, other+"^{tree}")
		})
	})
	t.Run("with a signature that is not canonical", func(t *testing.T) {
		f := newFleet(t, alice)
		text := withSignature(raw(t, f.Repo, f.button(f.branch("topic", alice))), "x")
		repo := load(t, f.Repo)
		_, err := Policy{Now: noon}.Advance(t.Context(), repo, f.pin, repo.put(text))
		assert.Equal(t, sources.NonCanonicalSignature, sources.ReasonOf(err))
	})
}

// B25: who signs a merge vouches for it, also where it brings what nobody else
// signed.
func TestASignedMergeIsACommitLikeAnother(t *testing.T) {
	alice, bob := sshKey(t, "alice"), sshKey(t, "bob")
	f := newFleet(t, alice, bob)
	args := []string{"-c", "gpg.format=ssh", "-c", "user.signingKey=" + bob.Private, "-c", "commit.gpgSign=true"}
	v := f.takes(f.button(f.branch("topic", nil, nil), args...), 1)
	assert.Equal(t, "bob", v.Signer.Name)
}

func TestAKeyRevokedSinceIsReportedOnAMergeThatStandsOnIt(t *testing.T) {
	alice := sshKey(t, "alice")
	f := newFleet(t, alice)
	f.setPin(f.button(f.branch("topic", alice)))
	v, err := f.advance(f.pin.Commit)
	require.NoError(t, err)
	assert.Equal(t, "alice", v.Signer.Name)
	_, err = f.advanceWith(Policy{Now: noon, Revoked: []string{v.Signer.Fingerprint}}, f.pin.Commit)
	assert.Equal(t, sources.RevokedKey, sources.ReasonOf(err), "%v", err)
}

// Such a merge needs no key: whoever serves the branch can leave it out, or
// make another one. A cluster that was shown that is not locked out.
func TestAnotherMergeThatAddsNothingIsAsGood(t *testing.T) {
	alice := sshKey(t, "alice")
	f := newFleet(t, alice)
	topic := f.branch("topic", alice)
	merge := f.button(topic)
	next := f.Commit("next", alice)

	t.Run("the branch was served without the merge", func(t *testing.T) {
		served := *f
		served.setPin(topic)
		v := served.takes(merge, 0)
		assert.True(t, v.Twin)
		assert.Equal(t, "alice", v.Signer.Name)
		assert.True(t, served.takes(next, 1).Twin)
	})
	t.Run("another merge was served", func(t *testing.T) {
		served := *f
		other := f.Git("commit-tree", "-m", "Another", "-p", f.pin.Commit, "-p", topic, topic+"^{tree}")
		require.NotEqual(t, merge, other)
		served.setPin(other)
		assert.True(t, served.takes(merge, 0).Twin)
		assert.True(t, served.takes(next, 1).Twin)
	})
	t.Run("but not one of the same parents with another tree", func(t *testing.T) {
		served := *f
		served.setPin(merge)
		f.Git("checkout", "--quiet", merge)
		f.Write("addons/evil.yaml", "x")
		f.Git("add", "--all")
		evil := f.Git("commit-tree", "-m", "Merge", "-p", f.pin.Commit, "-p", topic, f.Git("write-tree"))
		f.Git("reset", "--quiet", "--hard")
		served.refuses(evil, evil, sources.Unsigned)
	})
	t.Run("nor one that brings another history", func(t *testing.T) {
		served := *f
		served.setPin(topic)
		f.Git("checkout", "--quiet", f.pin.Commit)
		beside := f.Commit("beside", alice)
		evil := f.Git("commit-tree", "-m", "Merge", "-p", beside, "-p", topic, topic+"^{tree}")
		served.refuses(evil, evil, sources.Unsigned)
	})
	t.Run("nor if the pin adds something", func(t *testing.T) {
		served := *f
		other := f.Git("commit-tree", "-m", "Another", "-p", f.pin.Commit, "-p", topic, f.pin.Commit+"^{tree}")
		served.setPin(other)
		served.refuses(next, next, sources.HistoryRewound)
	})
	t.Run("nor one of another branch", func(t *testing.T) {
		served := *f
		f.Git("checkout", "--quiet", f.pin.Commit)
		served.setPin(f.branch("other", alice))
		served.refuses(next, next, sources.HistoryRewound)
		served.setPin(f.Git("commit-tree", "-m", "Merge", "-p", f.pin.Commit, "-p", f.Head(), f.Head()+"^{tree}"))
		served.refuses(next, next, sources.HistoryRewound)
	})
}

func TestTheSearchForAnAncestorIsBounded(t *testing.T) {
	repo := &store{objects: map[string][]byte{}, kinds: map[string]string{}}
	w := &walk{Policy: Policy{Now: noon}, repo: repo}
	chain := func(length int) (first string, last Commit) {
		first = repo.put(payloadAt(noon.Add(time.Duration(length) * time.Second)))
		id, text := first, ""
		for range length {
			text = child(id)
			id = repo.put(text)
		}
		return first, parse(t, text)
	}
	first, last := chain(maxAncestors)
	found, err := w.isAncestor(t.Context(), first, last)
	require.NoError(t, err)
	assert.True(t, found)

	first, last = chain(maxAncestors + 1)
	repo.reads = 0
	found, err = w.isAncestor(t.Context(), first, last)
	require.NoError(t, err)
	assert.False(t, found)
	assert.LessOrEqual(t, repo.reads, maxAncestors)
}
