package trust

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fleetling/fleetling/sources"
)

// maxSkew is how far clocks may differ, either way.
const maxSkew = 10 * time.Minute

// Policy is what a verdict depends on beside the commit and the signers.
type Policy struct {
	// Now is the time of the verdict. At the zero time every signature is in
	// the future.
	Now time.Time
	// Revoked are fingerprints of keys that count no more, as ParseFingerprint
	// takes them: of SSH keys, OpenPGP keys, or single subkeys.
	Revoked []string
	// NotBefore is the signing time of the pin, or zero: a key that has
	// expired can't sign from before it. Introduce and Advance set it.
	NotBefore time.Time
}

// Signature is a signature that was found good.
type Signature struct {
	Signer Signer
	// SignedAt is when: the signature's own time (OpenPGP), or the committer's
	// (SSH, whose signatures carry none).
	SignedAt time.Time
	// key is the id of the very key: for an OpenPGP subkey not the signer's.
	key string
}

// ParseFingerprint gives the form in which Signer.Fingerprint writes text:
// "SHA256:..." as it is, hexadecimal digits in upper case and without spaces.
func ParseFingerprint(text string) (string, error) {
	if sum, ok := strings.CutPrefix(text, sshFingerprint); ok {
		if digest, err := base64.RawStdEncoding.Strict().DecodeString(sum); err == nil && len(digest) == 32 {
			return text, nil
		}
	}
	if hex := strings.ToUpper(strings.ReplaceAll(text, " ", "")); isFingerprint(hex) {
		return hex, nil
	}
	return "", fmt.Errorf(`%q is not a fingerprint: ssh-keygen -lf gives "SHA256:..." of an SSH key, gpg --fingerprint 40 hexadecimal digits of an OpenPGP key`, text)
}

// Verify judges the signature of one commit by the given keys. The error is a
// *sources.Error whose reason is the first that holds in the order
// NonCanonicalSignature, Unsigned, UnknownKey, RevokedKey, WeakAlgorithm, ClockSkew, ExpiredKey, BadSignature;
// any other error is about the policy itself.
func (p Policy) Verify(c Commit, s Signers) (Signature, error) {
	if err := c.readClaim(); err != nil {
		return Signature{}, err
	}
	if c.claim == nil {
		return Signature{}, refuse(sources.Unsigned, c.ID, "it is not signed")
	}
	k := s.find(c.claim.key())
	if k == nil {
		return Signature{}, refuse(sources.UnknownKey, c.ID, "it is signed by %s, which is not among the signers", c.claim.key())
	}
	revoked, err := p.revokes(k.Fingerprint, k.id)
	if err != nil {
		return Signature{}, err
	}
	at := c.claim.signedAt(c)
	bad := func(reason sources.Reason, err error) (Signature, error) {
		return Signature{}, refuse(reason, c.ID, "signed by %s: %w", k.Signer, err)
	}
	if revoked || k.revoked {
		return bad(sources.RevokedKey, fmt.Errorf("key %s is revoked", k.id))
	}
	if weak := cmp.Or(k.weak, c.claim.weak()); weak != "" {
		return bad(sources.WeakAlgorithm, errors.New(weak))
	}
	if reason, err := p.checkTime(k, at); err != nil {
		return bad(reason, err)
	}
	if err := c.claim.check(c.Payload, k); err != nil {
		return bad(sources.BadSignature, fmt.Errorf("its signature %w", err))
	}
	return Signature{Signer: k.Signer, SignedAt: at, key: k.id}, nil
}

// checkTime says why k can't have signed at that time.
func (p Policy) checkTime(k *key, at time.Time) (sources.Reason, error) {
	switch {
	case at.After(p.Now.Add(maxSkew)):
		return sources.ClockSkew, fmt.Errorf("the signature is from %s, and here it is %s", stamp(at), stamp(p.Now))
	case !k.validAt(at):
		return sources.ExpiredKey, fmt.Errorf("the signature is from %s, its key is valid from %s to %s", stamp(at), stamp(k.from), stamp(k.until))
	case k.expiredAt(p.Now) && at.Before(p.NotBefore.Add(-maxSkew)):
		return sources.ExpiredKey, fmt.Errorf("the signature is from %s, before that of the pin (%s), and its key has expired since", stamp(at), stamp(p.NotBefore))
	default:
		return "", nil
	}
}

// revokes says whether the configuration revokes one of the ids. An entry that
// is no fingerprint is an error: it would revoke nothing, in silence.
func (p Policy) revokes(ids ...string) (bool, error) {
	revoked := false
	for _, text := range p.Revoked {
		fingerprint, err := ParseFingerprint(text)
		if err != nil {
			return false, fmt.Errorf("trust.revoked: %w", err)
		}
		for _, id := range ids {
			revoked = revoked || id == fingerprint || (isFingerprint(fingerprint) && id == keyID(fingerprint))
		}
	}
	return revoked, nil
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "any time"
	}
	return t.UTC().Format(time.RFC3339)
}
