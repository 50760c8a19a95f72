package trust

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/gittest"
)

func introduce(t *testing.T, r *gittest.Repo, intro Introduction, head string) (Verified, error) {
	t.Helper()
	return Policy{Now: noon.Add(time.Minute)}.Introduce(t.Context(), load(t, r), intro, head)
}

func TestWithoutAFirstCommitTheHeadItselfMustBeByAFirstSigner(t *testing.T) {
	alice, bob, mallory := sshKey(t, "alice"), sshKey(t, "bob"), sshKey(t, "mallory")
	r := newRepo(t)
	r.Commit("unsigned history", nil)
	setSigners(r, bob)
	head := r.Commit("second", alice)
	c := parse(t, raw(t, r, head))

	got, err := introduce(t, r, Introduction{Signers: signers(t, alice)}, head)
	require.NoError(t, err)
	want := Verified{
		Pin:    Pin{Commit: head, PayloadHash: c.PayloadHash, SignedAt: noon},
		Signer: Signer{"alice", only(signers(t, alice)).Fingerprint}, Tree: c.Tree, Steps: 1, Introduced: true,
	}
	assert.Empty(t, cmp.Diff(want, got), "-want +got")

	_, err = introduce(t, r, Introduction{Signers: signers(t, mallory)}, head)
	assert.Equal(t, sources.UnknownKey, sources.ReasonOf(err), "%v", err)
	_, err = introduce(t, r, Introduction{}, head)
	assert.Equal(t, sources.NotIntroduced, sources.ReasonOf(err), "%v", err)
	assert.ErrorContains(t, err, "trust.signers")
	unsigned := r.Commit("third", nil)
	_, err = introduce(t, r, Introduction{Signers: signers(t, alice)}, unsigned)
	assert.Equal(t, sources.Unsigned, sources.ReasonOf(err), "%v", err)
}

func TestOnceAPinExistsFirstSignersNoLongerCount(t *testing.T) {
	alice, bob := sshKey(t, "alice"), sshKey(t, "bob")
	r := newRepo(t)
	setSigners(r, bob)
	first := r.Commit("first", alice)
	v, err := introduce(t, r, Introduction{Signers: signers(t, alice)}, first)
	require.NoError(t, err)

	p := Policy{Now: noon.Add(time.Minute)}
	byAlice := r.Commit("by alice", alice)
	_, err = p.Advance(t.Context(), load(t, r), v.Pin, byAlice)
	assert.Equal(t, sources.UnknownKey, sources.ReasonOf(err), "%v", err)

	// The same with a first commit: only that one is theirs.
	_, err = introduce(t, r, Introduction{Signers: signers(t, alice), Commit: first}, byAlice)
	assert.Equal(t, sources.UnknownKey, sources.ReasonOf(err), "%v", err)
	r.Git("reset", "--quiet", "--hard", first)
	byBob := r.Commit("by bob", bob)
	v, err = introduce(t, r, Introduction{Signers: signers(t, alice), Commit: first}, byBob)
	require.NoError(t, err)
	assert.Equal(t, "bob", v.Signer.Name)
	assert.Equal(t, 2, v.Steps)
	assert.True(t, v.Introduced)
}

func TestTheFirstCommitMustBeByAFirstSigner(t *testing.T) {
	alice, bob := sshKey(t, "alice"), sshKey(t, "bob")
	r := newRepo(t)
	setSigners(r, bob)
	first := r.Commit("first", bob)
	head := r.Commit("second", bob)
	_, err := introduce(t, r, Introduction{Signers: signers(t, alice), Commit: first}, head)
	assert.Equal(t, sources.UnknownKey, sources.ReasonOf(err), "%v", err)
	assert.ErrorContains(t, err, first[:12])

	v, err := introduce(t, r, Introduction{Signers: signers(t, bob), Commit: head}, head)
	require.NoError(t, err)
	assert.Equal(t, 1, v.Steps)
}

// G5: A holds the keys, I is the first commit, X another child of A, signed by
// a key of A.
func TestAHeadBesideTheFirstCommitIsRefused(t *testing.T) {
	alice := sshKey(t, "alice")
	r := newRepo(t)
	setSigners(r, alice)
	a := r.Commit("A", alice)
	i := r.Commit("I", alice)
	r.Git("reset", "--quiet", "--hard", a)
	x := r.Commit("X", alice)
	intro := Introduction{Signers: signers(t, alice), Commit: i}

	for name, head := range map[string]string{"X": x, "its child": r.Commit("Y", alice), "A itself": a} {
		_, err := introduce(t, r, intro, head)
		assert.Equal(t, sources.NotIntroduced, sources.ReasonOf(err), "%s: %v", name, err)
		assert.ErrorContains(t, err, i[:12])
	}
	_, err := introduce(t, r, intro, i)
	assert.NoError(t, err)
}

func TestAFirstCommitThatIsNotThereIsNotIntroduced(t *testing.T) {
	alice := sshKey(t, "alice")
	r := newRepo(t)
	setSigners(r, alice)
	head := r.Commit("first", alice)
	intro := Introduction{Signers: signers(t, alice), Commit: strings.Repeat("a", 40)}
	_, err := introduce(t, r, intro, head)
	assert.Equal(t, sources.NotIntroduced, sources.ReasonOf(err), "%v", err)

	repo := load(t, r)
	repo.broken[intro.Commit] = errDisk
	_, err = Policy{Now: noon}.Introduce(t.Context(), repo, intro, head)
	require.ErrorIs(t, err, errDisk)
	assert.Empty(t, sources.ReasonOf(err))
}

func TestAnIntroductionAfterWhichNobodyCouldSignIsRefused(t *testing.T) {
	alice := sshKey(t, "alice")
	intro := Introduction{Signers: signers(t, alice)}
	r := newRepo(t)
	first := r.Commit("no keys", alice)
	_, err := introduce(t, r, intro, first)
	assert.Equal(t, sources.NotIntroduced, sources.ReasonOf(err), "%v", err)
	assert.ErrorContains(t, err, "signers/NAME.pub")

	r.Write("signers/alice.pub", "garbage")
	_, err = introduce(t, r, Introduction{Signers: intro.Signers, Commit: first}, r.Commit("garbage", alice))
	assert.Equal(t, sources.UnknownKey, sources.ReasonOf(err), "%v", err)

	// Nor by what an older commit might have said, if it could be read.
	repo := load(t, r)
	payload, _ := cutSignature(t, raw(t, r, first))
	bad := repo.put("x-extra 1\n" + payloadAt(noon))
	head := repo.put(signed(t, strings.Replace(payload, "\nauthor", "\nparent "+bad+"\nauthor", 1), alice))
	_, err = Policy{Now: noon}.Introduce(t.Context(), repo, intro, head)
	assert.Equal(t, sources.NotIntroduced, sources.ReasonOf(err), "%v", err)

	// Keys of an earlier commit on the line will do.
	setSigners(r, alice)
	r.Commit("keys", alice)
	r.Remove("signers")
	_, err = introduce(t, r, intro, r.Commit("no keys again", alice))
	assert.NoError(t, err)
}

// B25: only a key that was valid when it signed can introduce.
func TestAnIntroductionByAKeyThatHadExpiredIsRefused(t *testing.T) {
	alice := sshKey(t, "alice")
	r := newRepo(t)
	r.Write("signers/alice.pub", `alice@example.com valid-before="20240101Z" `+alice.Line+"\n")
	head := r.Commit("first", alice)
	s, _, err := ReadSigners(dirFS(r), "signers")
	require.NoError(t, err)
	_, err = introduce(t, r, Introduction{Signers: s}, head)
	assert.Equal(t, sources.ExpiredKey, sources.ReasonOf(err), "%v", err)
}
