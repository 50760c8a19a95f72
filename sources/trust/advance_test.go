package trust

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/gittest"
)

// fleet is a repository whose first commit is pinned.
type fleet struct {
	*gittest.Repo
	t   *testing.T
	pin Pin
}

// newFleet makes the first commit with the keys as signers, signed by the first.
func newFleet(t *testing.T, keys ...gittest.Key) *fleet {
	t.Helper()
	f := &fleet{Repo: newRepo(t), t: t}
	setSigners(f.Repo, keys...)
	f.setPin(f.Commit("first", keys[0]))
	return f
}

func (f *fleet) setPin(id string) {
	f.t.Helper()
	c := parse(f.t, raw(f.t, f.Repo, id))
	f.pin = Pin{Commit: id, PayloadHash: c.PayloadHash, SignedAt: noon}
}

func (f *fleet) advance(head string) (Verified, error) {
	f.t.Helper()
	return f.advanceWith(Policy{Now: noon.Add(time.Minute)}, head)
}

func (f *fleet) advanceWith(p Policy, head string) (Verified, error) {
	f.t.Helper()
	return p.Advance(f.t.Context(), load(f.t, f.Repo), f.pin, head)
}

// takes says that head is taken, after so many steps.
func (f *fleet) takes(head string, steps int) Verified {
	f.t.Helper()
	v, err := f.advance(head)
	require.NoError(f.t, err)
	assert.Equal(f.t, head, v.Commit)
	assert.Equal(f.t, steps, v.Steps)
	return v
}

// refuses says that head is refused because of the commit id.
func (f *fleet) refuses(head, id string, want sources.Reason) {
	f.t.Helper()
	v, err := f.advance(head)
	assert.Equal(f.t, want, sources.ReasonOf(err), "%v", err)
	assert.ErrorContains(f.t, err, "commit "+id[:12])
	assert.Equal(f.t, Verified{}, v)
}

func TestAdvanceTakesAHeadThatIsSignedThroughout(t *testing.T) {
	alice, bob := sshKey(t, "alice"), sshKey(t, "bob")
	f := newFleet(t, alice, bob)
	f.Commit("second", bob)
	f.Time = noon.Add(time.Minute)
	head := f.Commit("third", alice)

	v := f.takes(head, 2)
	c := parse(t, raw(t, f.Repo, head))
	want := Verified{
		Pin:    Pin{Commit: head, PayloadHash: c.PayloadHash, SignedAt: noon.Add(time.Minute)},
		Signer: only(signers(t, alice)), Tree: c.Tree, Steps: 2,
	}
	want.Signer.Name = "alice"
	assert.Empty(t, cmp.Diff(want, v), "-want +got")

	again, err := f.advance(head)
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(v, again), "-want +got")
}

// B25: not only the head is looked at.
func TestAnyRefusedCommitOnTheLineRefusesTheHead(t *testing.T) {
	alice, mallory := sshKey(t, "alice"), sshKey(t, "mallory")
	t.Run("unsigned", func(t *testing.T) {
		f := newFleet(t, alice)
		bad := f.Commit("second", nil)
		f.refuses(f.Commit("third", alice), bad, sources.Unsigned)
	})
	t.Run("the head unsigned over signed parents", func(t *testing.T) {
		f := newFleet(t, alice)
		f.Commit("second", alice)
		bad := f.Commit("third", nil)
		f.refuses(bad, bad, sources.Unsigned)
	})
	t.Run("by an unknown key", func(t *testing.T) {
		f := newFleet(t, alice)
		bad := f.Commit("second", mallory)
		f.refuses(f.Commit("third", alice), bad, sources.UnknownKey)
	})
	t.Run("the head itself", func(t *testing.T) {
		f := newFleet(t, alice)
		f.Commit("second", alice)
		bad := f.Commit("third", mallory)
		f.refuses(bad, bad, sources.UnknownKey)
	})
	t.Run("the oldest is named", func(t *testing.T) {
		f := newFleet(t, alice)
		bad := f.Commit("second", mallory)
		f.refuses(f.Commit("third", nil), bad, sources.UnknownKey)
	})
}

// B25: who may sign a commit is in the tree of its first parent, not in its own.
func TestKeysRotateByACommitThatAnOldKeySigned(t *testing.T) {
	alice, bob := sshKey(t, "alice"), gittest.NewPGPKey(t, "bob", "ed25519", "0")
	f := newFleet(t, alice)
	setSigners(f.Repo, alice, bob)
	f.Commit("add bob", alice)
	setSigners(f.Repo, bob)
	f.Time = time.Now().Truncate(time.Second)
	removed := f.Commit("remove alice", bob)
	byAlice := f.Commit("alice after that", alice)

	p := Policy{Now: f.Time.Add(time.Minute)}
	v, err := f.advanceWith(p, removed)
	require.NoError(t, err)
	assert.Equal(t, Signer{Name: "bob", Fingerprint: bob.Fingerprint}, v.Signer)
	_, err = f.advanceWith(p, byAlice)
	assert.Equal(t, sources.UnknownKey, sources.ReasonOf(err))

	f = newFleet(t, alice)
	setSigners(f.Repo, alice, bob)
	f.Time = p.Now
	_, err = f.advanceWith(p, f.Commit("bob adds himself", bob))
	assert.Equal(t, sources.UnknownKey, sources.ReasonOf(err))
}

func TestASignedRevertIsAHeadLikeAnother(t *testing.T) {
	alice := sshKey(t, "alice")
	f := newFleet(t, alice)
	first := parse(t, raw(t, f.Repo, f.Head()))
	f.Write("addons/x.yaml", "x")
	f.setPin(f.Commit("add x", alice))
	f.Remove("addons")
	v := f.takes(f.Commit("revert", alice), 1)
	assert.Equal(t, first.Tree, v.Tree)
}

// Nobody is locked out by a commit that leaves no key: the last readable set
// stays the authority.
func TestWhereNoReadableKeyIsLeftTheLastReadableSetStays(t *testing.T) {
	alice, mallory := sshKey(t, "alice"), sshKey(t, "mallory")
	for name, leave := range map[string]func(*fleet){
		"no folder":         func(f *fleet) { f.Remove("signers") },
		"garbage":           func(f *fleet) { f.Write("signers/alice.pub", "ssh-ed25519 garbage") },
		"a file instead":    func(f *fleet) { f.Remove("signers"); f.Write("signers", "x") },
		"only a weak key":   func(f *fleet) { f.Remove("signers"); f.Write("signers/a.pub", fixture(t, "weak/ssh-rsa1024.pub")) },
		"only other things": func(f *fleet) { f.Remove("signers"); f.Write("signers/README.md", "x") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, alice)
			leave(f)
			broken := f.Commit("leave no key", alice)
			f.takes(broken, 1)
			head := f.Commit("and one more", alice)
			f.takes(head, 2)
			bad := f.Commit("by another", mallory)
			f.refuses(bad, bad, sources.UnknownKey)

			f.setPin(head)
			f.Git("reset", "--quiet", "--hard", head)
			setSigners(f.Repo, alice)
			f.takes(f.Commit("mend", alice), 1)
			f.Git("reset", "--quiet", "--hard", head)
			bad = f.Commit("by another", mallory)
			f.refuses(bad, bad, sources.UnknownKey)
		})
	}
}

// A key that revokes itself was put there on purpose: no fallback to the set
// in which it still counts.
func TestASetOfRevokedKeysIsAReadableSet(t *testing.T) {
	alice := pgpKeyAt(t, "alice", "ed25519", "0", noon)
	f := &fleet{Repo: newRepo(t), t: t}
	setSigners(f.Repo, alice)
	f.setPin(commitAt(t, f.Repo, "first", alice, noon))
	f.Write("signers/alice.asc", revokedCopy(t, alice))
	commitAt(t, f.Repo, "revoke", alice, noon)
	bad := commitAt(t, f.Repo, "go on", alice, noon)
	f.refuses(bad, bad, sources.RevokedKey)
}

// What would lock the next commit out is refused while the pin is before it.
func TestACommitWithTooManyKeysIsRefused(t *testing.T) {
	alice := sshKey(t, "alice")
	f := newFleet(t, alice)
	for i := range maxKeyFiles {
		f.Write(fmt.Sprintf("signers/k%d.pub", i), alice.Public())
	}
	bad := f.Commit("many keys", alice)
	f.refuses(bad, bad, sources.LimitExceeded)
}

func TestAHeadThatDoesNotDescendFromThePinIsRefused(t *testing.T) {
	alice, mallory := sshKey(t, "alice"), sshKey(t, "mallory")
	f := newFleet(t, alice)
	first := f.Head()
	second := f.Commit("second", alice)
	f.setPin(f.Commit("third", alice))

	f.refuses(second, second, sources.HistoryRewound)
	f.refuses(first, first, sources.HistoryRewound)

	f.Git("reset", "--quiet", "--hard", second)
	fork := f.Commit("another third", alice)
	f.refuses(fork, fork, sources.HistoryRewound)
	unsigned := f.Commit("unsigned", nil)
	f.refuses(unsigned, unsigned, sources.Unsigned)
	f.Git("reset", "--quiet", "--hard", fork)
	unknown := f.Commit("by another", mallory)
	f.refuses(unknown, unknown, sources.UnknownKey)

	// Another history is consistent in itself: its keys sign its commits.
	f.Git("checkout", "--quiet", "--orphan", "other")
	setSigners(f.Repo, mallory)
	root := f.Commit("root", mallory)
	f.refuses(root, root, sources.HistoryRewound)
	other := f.Commit("its second", mallory)
	f.refuses(other, other, sources.HistoryRewound)
	f.Git("checkout", "--quiet", "--orphan", "unsigned")
	root = f.Commit("root", nil)
	f.refuses(root, root, sources.Unsigned)
}

// Who serves the repository can wrap a signature anew, without any key. A
// cluster that pinned such a twin, or is shown one, is not locked out.
func TestATwinOfThePinIsThePin(t *testing.T) {
	alice := sshKey(t, "alice")
	f := newFleet(t, alice)
	honest := raw(t, f.Repo, f.Head())
	child := raw(t, f.Repo, f.Commit("second", alice))
	repo := load(t, f.Repo)
	p := Policy{Now: noon.Add(time.Minute)}
	twin := edit(t, honest, func(s string) string { return rewrapSSH(s, 64) })
	broken := strings.Replace(honest, "\ngpgsig ", "\ngpgsig-sha256 x\ngpgsig ", 1)
	require.NotEqual(t, objectID(honest), objectID(twin))

	t.Run("the honest child of its twin", func(t *testing.T) {
		pin := f.pin
		pin.Commit = objectID(twin) // and the twin itself is no longer on the server
		v, err := p.Advance(t.Context(), repo, pin, objectID(child))
		require.NoError(t, err)
		assert.True(t, v.Twin)
		assert.Equal(t, objectID(child), v.Commit)
	})
	t.Run("a child of a twin that is not canonical", func(t *testing.T) {
		payload, _ := cutSignature(t, child)
		head := repo.put(signed(t, strings.Replace(payload, objectID(honest), repo.put(broken), 1), alice))
		v, err := p.Advance(t.Context(), repo, f.pin, head)
		require.NoError(t, err)
		assert.True(t, v.Twin)
		assert.Equal(t, 1, v.Steps)
	})
	for name, head := range map[string]string{"a twin as the head": twin, "a twin that is not canonical as the head": broken} {
		t.Run(name, func(t *testing.T) {
			v, err := p.Advance(t.Context(), repo, f.pin, repo.put(head))
			require.NoError(t, err)
			assert.True(t, v.Twin)
			assert.Equal(t, f.pin, v.Pin)
			assert.Zero(t, v.Steps)
		})
	}
	t.Run("a twin on the way has to be canonical", func(t *testing.T) {
		payload, _ := cutSignature(t, child)
		bad := repo.put(strings.Replace(child, "\ngpgsig ", "\ngpgsig-sha256 x\ngpgsig ", 1))
		head := repo.put(signed(t, strings.Replace(payload, objectID(honest), bad, 1), alice))
		_, err := p.Advance(t.Context(), repo, f.pin, head)
		assert.Equal(t, sources.NonCanonicalSignature, sources.ReasonOf(err))
	})
}

// F6: nothing is new, but the key that signed the head is revoked since.
func TestAKeyRevokedSinceIsReportedOnThePinnedHead(t *testing.T) {
	alice, bob := sshKey(t, "alice"), sshKey(t, "bob")
	fingerprint := only(signers(t, bob)).Fingerprint
	f := newFleet(t, alice, bob)
	f.setPin(f.Commit("by bob", bob))

	v, err := f.advance(f.pin.Commit)
	require.NoError(t, err)
	assert.Equal(t, Verified{Pin: f.pin, Signer: Signer{"bob", fingerprint}, Tree: v.Tree}, v)
	assert.NotEmpty(t, v.Tree)

	revoked := Policy{Now: noon.Add(time.Minute), Revoked: []string{fingerprint}}
	_, err = f.advanceWith(revoked, f.pin.Commit)
	assert.Equal(t, sources.RevokedKey, sources.ReasonOf(err))
	assert.ErrorContains(t, err, f.pin.Commit[:12])

	// The way out is a commit on top by another signer, not by the same.
	bad := f.Commit("by bob again", bob)
	_, err = f.advanceWith(revoked, bad)
	assert.Equal(t, sources.RevokedKey, sources.ReasonOf(err))
	f.Git("reset", "--quiet", "--hard", f.pin.Commit)
	head := f.Commit("by alice", alice)
	v, err = f.advanceWith(revoked, head)
	require.NoError(t, err)
	assert.Equal(t, head, v.Commit)
}

// The pin of an introduction was proven by first signers, which are gone: its
// signature's own word is what is left.
func TestAKeyRevokedSinceIsReportedOnAnIntroducedHead(t *testing.T) {
	alice := pgpKeyAt(t, "alice", "ed25519", "0", noon)
	alice.GPG(t, "", append(faked(noon), "--passphrase", "", "--quick-add-key", alice.Fingerprint, "ed25519", "sign")...)
	sub := &gittest.PGPKey{Name: "alice", Home: alice.Home, Fingerprint: fingerprints(t, alice)[1]}
	f := &fleet{Repo: newRepo(t), t: t}
	f.setPin(commitAt(t, f.Repo, "no keys here", sub, noon))

	v, err := f.advance(f.pin.Commit)
	require.NoError(t, err)
	assert.Equal(t, Signer{Fingerprint: sub.Fingerprint}, v.Signer)

	p := Policy{Now: noon.Add(time.Minute), Revoked: []string{sub.Fingerprint}}
	_, err = f.advanceWith(p, f.pin.Commit)
	assert.Equal(t, sources.RevokedKey, sources.ReasonOf(err))

	// With the key in its own tree, the primary's revocation says it as well.
	setSigners(f.Repo, alice)
	f.Git("checkout", "--quiet", "--orphan", "again")
	f.setPin(commitAt(t, f.Repo, "first", sub, noon))
	v, err = f.advance(f.pin.Commit)
	require.NoError(t, err)
	assert.Equal(t, Signer{"alice", alice.Fingerprint}, v.Signer)
	p.Revoked = []string{alice.Fingerprint}
	_, err = f.advanceWith(p, f.pin.Commit)
	assert.Equal(t, sources.RevokedKey, sources.ReasonOf(err))
}

// What is before an introduction was never verified: it can't refuse a head
// that is taken, and is not read over and over.
func TestWhatIsBeforeAnIntroductionDoesNotMatter(t *testing.T) {
	alice := sshKey(t, "alice")
	r := newRepo(t)
	setSigners(r, alice)
	text := raw(t, r, r.Commit("first", alice))
	payload, _ := cutSignature(t, text)
	p, intro := Policy{Now: noon.Add(time.Minute)}, Introduction{Signers: signers(t, alice)}
	on := func(repo *store, parent string) (Pin, error) {
		head := repo.put(signed(t, strings.Replace(payload, "\nauthor", "\nparent "+parent+"\nauthor", 1), alice))
		v, err := p.Introduce(t.Context(), repo, intro, head)
		return v.Pin, err
	}
	t.Run("a malformed commit", func(t *testing.T) {
		repo := load(t, r)
		pin, err := on(repo, repo.put("x-extra 1\n"+payloadAt(noon)))
		require.NoError(t, err)
		v, err := p.Advance(t.Context(), repo, pin, pin.Commit)
		require.NoError(t, err)
		assert.Equal(t, "alice", v.Signer.Name)
	})
	t.Run("a long history without keys", func(t *testing.T) {
		repo := load(t, r)
		parent := repo.put(payloadAt(noon))
		for range 3 * maxLookback {
			parent = repo.put(child(parent))
		}
		pin, err := on(repo, parent)
		require.NoError(t, err)
		repo.reads = 0
		_, err = p.Advance(t.Context(), repo, pin, pin.Commit)
		require.NoError(t, err)
		assert.LessOrEqual(t, repo.reads, maxLookback+2)
	})
}

// A clock that jumped back, or a key that ran out, changes nothing for what is
// pinned.
func TestAPinnedHeadIsNotJudgedAgainForItsTime(t *testing.T) {
	alice := sshKey(t, "alice")
	f := newFleet(t, alice)
	f.Write("signers/alice.pub", `alice@example.com valid-before="20240602Z" `+alice.Line+"\n")
	f.setPin(f.Commit("limit alice", alice))
	f.setPin(f.Commit("last", alice))
	for _, now := range []time.Time{noon.AddDate(-1, 0, 0), noon, noon.AddDate(5, 0, 0)} {
		v, err := f.advanceWith(Policy{Now: now}, f.pin.Commit)
		require.NoError(t, err)
		assert.Equal(t, "alice", v.Signer.Name)
	}
}

// A cluster that polls after each commit and one that polls once come to the
// same verdict: each commit is the floor for the next.
func TestAnExpiredKeyCannotSignFromBeforeACommitOnTheWay(t *testing.T) {
	alice, old := sshKey(t, "alice"), sshKey(t, "old")
	f := newFleet(t, alice)
	f.Write("signers/old.pub", `old@example.com valid-before="20240701Z" `+old.Line+"\n")
	f.Commit("old until July", alice)
	f.Time = noon.AddDate(0, 2, 0)
	august := f.Commit("in August", alice)
	f.Time = noon.AddDate(0, 0, 1)
	bad := f.Commit("dated back to June", old)
	p := Policy{Now: noon.AddDate(0, 3, 0)}

	v, err := f.advanceWith(p, august)
	require.NoError(t, err)
	_, once := f.advanceWith(p, bad)
	f.pin = v.Pin
	_, often := f.advanceWith(p, bad)
	assert.Equal(t, sources.ExpiredKey, sources.ReasonOf(once))
	assert.Equal(t, sources.ExpiredKey, sources.ReasonOf(often))

	// The floor never goes down, also where a valid key signs with an old date.
	f.Git("reset", "--quiet", "--hard", august)
	back := f.Commit("dated back by a valid key", alice)
	v, err = f.advanceWith(p, back)
	require.NoError(t, err)
	assert.Equal(t, noon.AddDate(0, 2, 0), v.SignedAt)
}

func TestWhatCannotBeReadIsNoVerdict(t *testing.T) {
	alice := sshKey(t, "alice")
	f := newFleet(t, alice)
	second := f.Commit("second", alice)
	head := f.Commit("third", alice)
	p := Policy{Now: noon.Add(time.Minute)}
	tree := parse(t, raw(t, f.Repo, f.pin.Commit)).Tree
	for name, id := range map[string]string{"the head": head, "a commit on the way": second, "the pin": f.pin.Commit, "a tree": tree} {
		t.Run(name, func(t *testing.T) {
			repo := load(t, f.Repo)
			repo.broken[id] = errDisk
			v, err := p.Advance(t.Context(), repo, f.pin, head)
			require.ErrorIs(t, err, errDisk)
			assert.Empty(t, sources.ReasonOf(err))
			assert.Equal(t, Verified{}, v)
		})
	}
	t.Run("after the context has ended", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := p.Advance(ctx, load(t, f.Repo), f.pin, head)
		assert.ErrorIs(t, err, context.Canceled)
	})
	t.Run("a head that is not there", func(t *testing.T) {
		_, err := f.advance(strings.Repeat("a", 40))
		assert.Empty(t, sources.ReasonOf(err))
		assert.Error(t, err)
	})
	t.Run("bytes of another commit", func(t *testing.T) {
		repo := load(t, f.Repo)
		repo.objects[second] = repo.objects[f.pin.Commit]
		_, err := p.Advance(t.Context(), repo, f.pin, head)
		assert.Equal(t, sources.MalformedCommit, sources.ReasonOf(err))
	})
}

func TestTheWalkIsBounded(t *testing.T) {
	repo := &store{objects: map[string][]byte{}, kinds: map[string]string{}}
	first := repo.put(payloadAt(noon))
	head := first
	for range maxSteps + 1 {
		head = repo.put(child(head))
	}
	_, err := Policy{Now: noon}.Advance(t.Context(), repo, Pin{Commit: first}, head)
	assert.Equal(t, sources.LimitExceeded, sources.ReasonOf(err), "%v", err)
	assert.LessOrEqual(t, repo.reads, maxSteps+2)

	// The search for a readable set of signers as well.
	w := &walk{Policy: Policy{Now: noon}, repo: repo}
	c, err := w.commit(t.Context(), head)
	require.NoError(t, err)
	_, err = w.authority(t.Context(), c, maxSteps)
	assert.Equal(t, sources.LimitExceeded, sources.ReasonOf(err), "%v", err)
}

// revokedCopy gives the public key with the revocation that gpg made with it.
func revokedCopy(t *testing.T, k *gittest.PGPKey) string {
	t.Helper()
	certificate, err := os.ReadFile(filepath.Join(k.Home, "openpgp-revocs.d", k.Fingerprint+".rev"))
	require.NoError(t, err)
	other := &gittest.PGPKey{Home: t.TempDir()}
	other.GPG(t, k.Public(), "--no-autostart", "--import")
	other.GPG(t, strings.Replace(string(certificate), ":-----BEGIN", "-----BEGIN", 1), "--no-autostart", "--import")
	return other.Public()
}
