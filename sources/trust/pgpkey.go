package trust

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
)

const (
	tagSecretKey     = 5
	tagPublicKey     = 6
	tagSecretSubkey  = 7
	tagUserID        = 13
	tagPublicSubkey  = 14
	tagUserAttribute = 17
)

// parsePGPKey reads one armored OpenPGP key: its primary key, if it signs, and
// its signing subkeys.
//
// All that the file says of validity is judged here, once: the newest valid
// self-signature counts, also for commits older than it (that is how a key is
// prolonged), and any valid revocation counts for ever. What is left is plain
// data, so that a verdict on a commit depends on nothing else.
func parsePGPKey(text string) ([]*key, error) {
	body, err := unarmorKey(text)
	if err != nil {
		return nil, err
	}
	if err := checkPackets(body); err != nil {
		return nil, err
	}
	reader := packet.NewReader(bytes.NewReader(body))
	entity, err := openpgp.ReadEntity(reader)
	if err != nil {
		return nil, fmt.Errorf("its key can't be read: %w", err)
	}
	if _, err := reader.Next(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows its key")
	}
	return parseEntity(entity)
}

func unarmorKey(text string) ([]byte, error) {
	const begin, end = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"
	text = strings.TrimSpace(text)
	switch {
	case strings.Contains(text, "PRIVATE KEY"):
		return nil, errors.New("it is a private key: take it out, and never use it again")
	case strings.Count(text, "-----BEGIN ") > 1:
		return nil, errors.New("it holds more than one key: one file each")
	case !strings.HasPrefix(text, begin) || !strings.HasSuffix(text, end):
		return nil, errors.New("it is not an armored OpenPGP key: gpg --armor --export writes one")
	}
	block, err := armor.Decode(strings.NewReader(text))
	if err != nil {
		return nil, errors.New("its armor can't be read")
	}
	body, err := io.ReadAll(block.Body)
	if err != nil {
		return nil, errors.New("its armor can't be read")
	}
	return body, nil
}

// checkPackets makes sure of what ReadEntity would pass over in silence: one
// primary key, first, nothing secret, and no revocation that can't be read.
func checkPackets(body []byte) error {
	reader := packet.NewOpaqueReader(bytes.NewReader(body))
	for first := true; ; first = false {
		p, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errors.New("its packets can't be read")
		}
		if err := checkPacket(p, first); err != nil {
			return err
		}
	}
}

func checkPacket(p *packet.OpaquePacket, first bool) error {
	switch {
	case p.Tag == tagSecretKey || p.Tag == tagSecretSubkey:
		return errors.New("it is a private key: take it out, and never use it again")
	case first && p.Tag != tagPublicKey:
		return errors.New("it does not begin with a public key")
	case !first && p.Tag == tagPublicKey:
		return errors.New("it holds more than one key: one file each")
	case !slices.Contains([]uint8{tagPublicKey, tagPublicSubkey, tagUserID, tagUserAttribute, tagSignature}, p.Tag):
		return fmt.Errorf("it holds a packet of type %d, which does not belong into a key", p.Tag)
	case p.Tag == tagSignature && isRevocation(p.Contents):
		if _, err := p.Parse(); err != nil {
			return fmt.Errorf("it holds a revocation that can't be read: %w", err)
		}
	}
	return nil
}

func isRevocation(contents []byte) bool {
	if len(contents) < 2 || contents[0] < 4 {
		return false
	}
	kind := packet.SignatureType(contents[1])
	return kind == packet.SigTypeKeyRevocation || kind == packet.SigTypeSubkeyRevocation
}

func parseEntity(entity *openpgp.Entity) ([]*key, error) {
	primary := entity.PrimaryKey
	whole := &key{pgp: primary, id: hexUpper(primary.Fingerprint), weak: weakPGPKey(primary)}
	whole.Fingerprint = whole.id
	if whole.weak != "" {
		// Nothing that a weak key says of itself is worth the arithmetic.
		keys := []*key{whole}
		for _, sub := range entity.Subkeys {
			keys = append(keys, &key{Signer: whole.Signer, pgp: sub.PublicKey, id: hexUpper(sub.PublicKey.Fingerprint), weak: whole.weak})
		}
		return keys, nil
	}
	self := newestSelfSignature(entity)
	if self == nil {
		return nil, errors.New("no valid self-signature is on its key: export it again with its user ids")
	}
	whole.restrict(self)
	for _, revocation := range entity.Revocations {
		whole.revoked = whole.revoked || primary.VerifyRevocationSignature(revocation.Packet) == nil
	}
	var keys []*key
	if self.FlagSign || !self.FlagsValid {
		keys = append(keys, whole)
	}
	for i := range entity.Subkeys {
		if k := parseSubkey(&entity.Subkeys[i], *whole); k != nil {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("neither its key nor one of its subkeys may sign")
	}
	return keys, nil
}

// parseSubkey gives a signing subkey with its back signature, or nil. whole is
// the primary key: what ends it ends the subkey.
func parseSubkey(sub *openpgp.Subkey, whole key) *key {
	binding, err := sub.LatestValidBindingSignature(time.Time{}, lenient())
	if err != nil || !binding.FlagsValid || !binding.FlagSign || binding.EmbeddedSignature == nil {
		return nil
	}
	k := whole
	k.pgp, k.id = sub.PublicKey, hexUpper(sub.PublicKey.Fingerprint)
	k.weak = weakPGPKey(sub.PublicKey)
	k.restrict(binding)
	if !isStrong(binding.EmbeddedSignature.Hash) {
		k.weak = "back signature with " + binding.EmbeddedSignature.Hash.String()
	}
	for _, revocation := range sub.Revocations {
		k.revoked = k.revoked || sub.Primary.PrimaryKey.VerifySubkeyRevocationSignature(revocation.Packet, sub.PublicKey) == nil
	}
	return &k
}

// newestSelfSignature gives the newest valid signature of the primary key on
// itself or on one of its user ids that is not revoked. Of two made in the same
// second the one with the shorter life counts, so that the order of a map does
// not.
func newestSelfSignature(entity *openpgp.Entity) *packet.Signature {
	var newest *packet.Signature
	consider := func(sig *packet.Signature, err error) {
		if err != nil {
			return
		}
		if newest == nil || sig.CreationTime.After(newest.CreationTime) ||
			(sig.CreationTime.Equal(newest.CreationTime) && life(sig) < life(newest)) {
			newest = sig
		}
	}
	consider(entity.LatestValidDirectSignature(time.Time{}, lenient()))
	for _, identity := range entity.Identities {
		consider(identity.Verify(time.Time{}, lenient()))
	}
	return newest
}

// lenient has go-crypto accept every digest: a SHA-1 one is found in its turn
// and named, instead of falling back to an older signature.
func lenient() *packet.Config {
	return &packet.Config{RejectHashAlgorithms: map[crypto.Hash]bool{}}
}

// life is how long a self-signature lets its key live, in seconds.
func life(sig *packet.Signature) uint64 {
	if sig.KeyLifetimeSecs == nil || *sig.KeyLifetimeSecs == 0 {
		return 1 << 63
	}
	return uint64(*sig.KeyLifetimeSecs)
}

// restrict narrows the key to what its self-signature says.
func (k *key) restrict(self *packet.Signature) {
	created := k.pgp.CreationTime
	k.narrow(created, endOf(created, self.KeyLifetimeSecs))
	k.narrow(created, endOf(self.CreationTime, self.SigLifetimeSecs))
	if !isStrong(self.Hash) {
		k.weak = "self-signature with " + self.Hash.String()
	}
}

// endOf is zero where there is no end.
func endOf(start time.Time, seconds *uint32) time.Time {
	if seconds == nil || *seconds == 0 {
		return time.Time{}
	}
	return start.Add(time.Duration(*seconds) * time.Second)
}

// weakPGPKey says why nothing that the key signs is taken, or nothing.
func weakPGPKey(public *packet.PublicKey) string {
	switch public.PubKeyAlgo {
	case packet.PubKeyAlgoRSA, packet.PubKeyAlgoRSASignOnly:
		bits, err := public.BitLength()
		if err != nil {
			return "RSA key of unknown size"
		}
		return weakRSA(int(bits))
	case packet.PubKeyAlgoEd25519:
		return ""
	case packet.PubKeyAlgoEdDSA, packet.PubKeyAlgoECDSA:
		curve, err := public.Curve()
		if err == nil && (curve == packet.Curve25519 || curve == packet.CurveNistP256 || curve == packet.CurveNistP384 || curve == packet.CurveNistP521) {
			return ""
		}
		return fmt.Sprintf("elliptic curve %q", curve)
	default:
		return algorithmName(public.PubKeyAlgo)
	}
}

func algorithmName(algorithm packet.PublicKeyAlgorithm) string {
	if algorithm == packet.PubKeyAlgoDSA {
		return "DSA"
	}
	return fmt.Sprintf("public key algorithm %d", algorithm)
}
