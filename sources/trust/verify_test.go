package trust

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
)

func TestVerifyGivesWhoSignedAndWhen(t *testing.T) {
	alice := sshKey(t, "alice")
	s := signers(t, alice)
	got, err := Policy{Now: noon}.Verify(parse(t, signed(t, payloadAt(noon), alice)), s)
	require.NoError(t, err)
	want := Signature{Signer: Signer{Name: "alice", Fingerprint: only(s).Fingerprint}, SignedAt: noon}
	assert.Empty(t, cmp.Diff(want, got, cmpopts.IgnoreUnexported(Signature{})), "-want +got")
	assert.Regexp(t, `^SHA256:[A-Za-z0-9+/]{43}$`, got.Signer.Fingerprint)

	// An OpenPGP signature has a time of its own, and a subkey's is the primary's.
	c := parse(t, fixture(t, "tools/sq-1.3-rfc4880.commit"))
	got, err = Policy{Now: noon.Add(time.Minute)}.Verify(c, fixtureKey(t, "tools/sq-1.3-rfc4880.asc"))
	require.NoError(t, err)
	want = Signature{Signer: Signer{Name: "sq-1.3-rfc4880", Fingerprint: "5C83E854276E8DC22C40B94CC1534B6ABD7C0D03"}, SignedAt: noon.Add(time.Second)}
	assert.Empty(t, cmp.Diff(want, got, cmpopts.IgnoreUnexported(Signature{})), "-want +got")
}

// A commit with every fault at once: as one after the other is mended, the
// reasons come in their order.
func TestTheFirstReasonInTheOrderWins(t *testing.T) {
	alice := sshKey(t, "alice")
	text := strings.Replace(signed(t, payloadAt(noon), alice), "message", "massage", 1)
	s := signers(t, alice)
	k := s.find(only(s).Fingerprint)
	k.weak, k.until = "because", noon.Add(-time.Hour)
	p := Policy{Now: noon.Add(-time.Hour), Revoked: []string{k.id}}
	broken := strings.Replace(text, "\ngpgsig ", "\ngpgsig-sha256 x\ngpgsig ", 1)
	unparsed, err := parseObject(objectID(broken), []byte(broken))
	require.NoError(t, err)
	c, nobody := parse(t, text), Signers{}

	_, malformed := ParseCommit(objectID("x"+broken), []byte("x"+broken))
	got := []sources.Reason{sources.ReasonOf(malformed)}
	judge := func(c Commit, s Signers) {
		_, err := p.Verify(c, s)
		got = append(got, sources.ReasonOf(err))
	}
	judge(unparsed, nobody)
	judge(parse(t, payloadAt(noon)), nobody)
	judge(c, nobody)
	judge(c, s)
	p.Revoked = nil
	judge(c, s)
	k.weak = ""
	judge(c, s)
	p.Now = noon
	judge(c, s)
	k.until = time.Time{}
	judge(c, s)
	judge(parse(t, signed(t, payloadAt(noon), alice)), s)

	assert.Equal(t, []sources.Reason{
		sources.MalformedCommit, sources.NonCanonicalSignature, sources.Unsigned, sources.UnknownKey, sources.RevokedKey,
		sources.WeakAlgorithm, sources.ClockSkew, sources.ExpiredKey, sources.BadSignature, "",
	}, got)
}

func TestClocksMayDifferByTenMinutes(t *testing.T) {
	alice := sshKey(t, "alice")
	c, s := parse(t, signed(t, payloadAt(noon), alice)), signers(t, alice)
	for now, want := range map[time.Time]sources.Reason{
		noon.Add(-10 * time.Minute):               "",
		noon.Add(-10*time.Minute - 1*time.Second): sources.ClockSkew,
		noon.AddDate(30, 0, 0):                    "",
		{}:                                        sources.ClockSkew,
	} {
		_, err := Policy{Now: now}.Verify(c, s)
		assert.Equal(t, want, sources.ReasonOf(err), "%v", now)
	}
}

// F9: a key that has expired since counts for what it signed while it was
// valid, but not from before the pin: else who finds an old key could sign
// into the past.
func TestAnExpiredKeyCannotSignFromBeforeThePin(t *testing.T) {
	alice := sshKey(t, "alice")
	c, s := parse(t, signed(t, payloadAt(noon), alice)), signers(t, alice)
	k := s.find(only(s).Fingerprint)
	for name, test := range map[string]struct {
		until, now, notBefore time.Time
		want                  sources.Reason
	}{
		"valid now":                              {now: noon, notBefore: noon.AddDate(1, 0, 0)},
		"valid when it signed, no pin":           {until: noon.Add(time.Second), now: noon.AddDate(1, 0, 0)},
		"valid when it signed, after the pin":    {until: noon.Add(time.Second), now: noon.AddDate(1, 0, 0), notBefore: noon},
		"within the skew of the pin":             {until: noon.Add(time.Second), now: noon.AddDate(1, 0, 0), notBefore: noon.Add(10 * time.Minute)},
		"before the pin":                         {until: noon.Add(time.Second), now: noon.AddDate(1, 0, 0), notBefore: noon.Add(10*time.Minute + time.Second), want: sources.ExpiredKey},
		"before the pin by a key valid till now": {until: noon.AddDate(1, 0, 1), now: noon.AddDate(1, 0, 0), notBefore: noon.AddDate(0, 6, 0)},
		"expired when it signed":                 {until: noon, now: noon, want: sources.ExpiredKey},
	} {
		t.Run(name, func(t *testing.T) {
			k.until = test.until
			_, err := Policy{Now: test.now, NotBefore: test.notBefore}.Verify(c, s)
			assert.Equal(t, test.want, sources.ReasonOf(err), "%v", err)
		})
	}
}

// The configuration revokes a whole OpenPGP key by its primary's fingerprint
// and one subkey by its own, in any way of writing them.
func TestRevokedByTheConfiguration(t *testing.T) {
	c := parse(t, fixture(t, "tools/sq-1.3-rfc4880.commit"))
	s := fixtureKey(t, "tools/sq-1.3-rfc4880.asc")
	for text, want := range map[string]sources.Reason{
		"5C83E854276E8DC22C40B94CC1534B6ABD7C0D03":           sources.RevokedKey,
		"5c83 e854 276e 8dc2 2c40  b94c c153 4b6a bd7c 0d03": sources.RevokedKey,
		"DAC0311C0D7987440AC07F3D3312704FD30B5B14":           sources.RevokedKey,
		"F57E79F55399033A5A2B173FA88178C6D1126767":           "",
	} {
		_, err := Policy{Now: noon.Add(time.Minute), Revoked: []string{text}}.Verify(c, s)
		assert.Equal(t, want, sources.ReasonOf(err), "%s: %v", text, err)
	}
}

// An entry that can't be read would revoke nothing, in silence.
func TestARevokedEntryThatIsNoFingerprintStopsEverything(t *testing.T) {
	alice := sshKey(t, "alice")
	r := newRepo(t)
	setSigners(r, alice)
	head := r.Commit("first", alice)
	repo, p := load(t, r), Policy{Now: noon, Revoked: []string{"alice"}}

	_, verify := p.Verify(parse(t, raw(t, r, head)), signers(t, alice))
	_, introduce := p.Introduce(t.Context(), repo, Introduction{Signers: signers(t, alice)}, head)
	_, advance := p.Advance(t.Context(), repo, Pin{Commit: head}, head)
	for _, err := range []error{verify, introduce, advance} {
		require.ErrorContains(t, err, `trust.revoked: "alice"`)
		assert.Empty(t, sources.ReasonOf(err))
	}
}

// A person reads it: which commit, who, what, what to do.
func TestARefusalSaysWhatToDo(t *testing.T) {
	alice := sshKey(t, "alice")
	text := strings.Replace(signed(t, payloadAt(noon), alice), "message", "massage", 1)
	_, err := Policy{Now: noon}.Verify(parse(t, text), signers(t, alice))
	for _, part := range []string{"commit " + objectID(text)[:12], "alice (SHA256:", "does not verify", "make it again", "signed throughout"} {
		assert.ErrorContains(t, err, part)
	}
	assert.Less(t, len(err.Error()), 512)
}

// G4: a strong key does not make a weak signature good.
func TestAWeakSignatureByAStrongKeyIsRefused(t *testing.T) {
	for name, ext := range map[string]string{"pgp-sha1": ".asc", "ssh-rsa-sha1": ".pub", "ssh-digest-sha1": ".pub"} {
		s := fixtureKey(t, "weak/"+name+ext)
		require.False(t, s.Empty(), name)
		_, err := Policy{Now: noon.Add(time.Minute)}.Verify(parse(t, fixture(t, "weak/"+name+".commit")), s)
		assert.Equal(t, sources.WeakAlgorithm, sources.ReasonOf(err), "%s: %v", name, err)
	}
}
