package trust

import (
	"crypto"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
)

const (
	pgpBegin = "-----BEGIN PGP SIGNATURE-----\n"
	pgpEnd   = "\n-----END PGP SIGNATURE-----"

	tagSignature = 2

	// Types of signature subpackets: RFC 9580, section 5.2.3.7.
	subCreation    = 2
	subExpiration  = 3
	subIssuer      = 16
	subNotation    = 20
	subFingerprint = 33
)

// pgpClaim is a detached binary OpenPGP signature, version 4 or 6.
type pgpClaim struct {
	version   byte
	algorithm packet.PublicKeyAlgorithm
	hash      byte
	// issuer is the fingerprint of the signing key, or its 64-bit id where
	// the signature names no more (GitHub's do), in upper-case hexadecimal.
	issuer string
	made   time.Time
	// parsed is nil where the claim is weak: nobody reads it then.
	parsed *packet.Signature
}

func parsePGPClaim(text string) (claim, error) {
	body, err := unarmorPGP(text)
	if err != nil {
		return nil, err
	}
	contents, err := unpack(body)
	if err != nil {
		return nil, err
	}
	c := &pgpClaim{}
	hashed, unhashed, err := c.parseFields(contents)
	if err != nil {
		return nil, err
	}
	if err := c.parseHashed(hashed); err != nil {
		return nil, err
	}
	if err := c.checkUnhashed(unhashed); err != nil {
		return nil, err
	}
	if c.weak() != "" {
		return c, nil
	}
	c.parsed, err = parseSignature(contents)
	return c, err
}

// parseFields reads the fields before the subpackets, and cuts those: RFC 9580,
// section 5.2.3.
func (c *pgpClaim) parseFields(contents []byte) (hashed, unhashed []byte, err error) {
	if len(contents) < 4 || (contents[0] != 4 && contents[0] != 6) {
		return nil, nil, errors.New("is not an OpenPGP signature of version 4 or 6")
	}
	c.version, c.algorithm, c.hash = contents[0], packet.PublicKeyAlgorithm(contents[2]), contents[3]
	if contents[1] != byte(packet.SigTypeBinary) {
		return nil, nil, fmt.Errorf("is of type %d, not binary", contents[1])
	}
	width := 2
	if c.version == 6 {
		width = 4
	}
	rest := contents[4:]
	for _, area := range []*[]byte{&hashed, &unhashed} {
		if len(rest) < width {
			return nil, nil, errors.New("is cut off")
		}
		length := 0
		for _, b := range rest[:width] {
			length = length<<8 | int(b)
		}
		if rest = rest[width:]; length > len(rest) {
			return nil, nil, errors.New("is cut off")
		}
		*area, rest = rest[:length], rest[length:]
	}
	return hashed, unhashed, nil
}

// parseHashed reads when and by which key: what the signature itself covers.
func (c *pgpClaim) parseHashed(area []byte) error {
	subs, err := packet.OpaqueSubpackets(area)
	if err != nil {
		return errors.New("has broken subpackets")
	}
	found := map[byte][]byte{}
	for _, sub := range subs {
		kind, critical := sub.SubType&0x7f, sub.SubType&0x80 != 0
		_, twice := found[kind]
		switch {
		case kind == subNotation && critical:
			return errors.New("has a critical notation")
		case kind == subExpiration:
			return errors.New("has an expiry of its own (default-sig-expire)")
		case kind != subNotation && twice:
			return fmt.Errorf("has subpacket %d twice", kind)
		}
		found[kind] = sub.Contents
	}
	created := found[subCreation]
	if len(created) != 4 {
		return errors.New("does not cover its time")
	}
	c.made = time.Unix(int64(binary.BigEndian.Uint32(created)), 0).UTC()
	return c.parseIssuer(found)
}

// parseIssuer takes the fingerprint of the key, or its id where there is none.
func (c *pgpClaim) parseIssuer(found map[byte][]byte) error {
	id, hasID := found[subIssuer]
	fingerprint, hasFingerprint := found[subFingerprint]
	switch {
	case hasFingerprint && len(fingerprint) > 0 && fingerprint[0] == c.version && isFingerprint(hexUpper(fingerprint[1:])):
		c.issuer = hexUpper(fingerprint[1:])
	case !hasFingerprint && len(id) == 8:
		c.issuer = hexUpper(id)
	default:
		return errors.New("does not cover its issuer")
	}
	if hasID && hexUpper(id) != keyID(c.issuer) {
		return errors.New("names two issuers")
	}
	return nil
}

// checkUnhashed allows what gpg writes where anybody could change it: the
// issuer's key id, which has to agree with what is covered.
func (c *pgpClaim) checkUnhashed(area []byte) error {
	subs, err := packet.OpaqueSubpackets(area)
	if err != nil || len(subs) > 1 {
		return errors.New("has more than the issuer's id outside of what it covers")
	}
	for _, sub := range subs {
		if sub.SubType != subIssuer || hexUpper(sub.Contents) != keyID(c.issuer) {
			return errors.New("has more than the issuer's id outside of what it covers")
		}
	}
	return nil
}

func (c *pgpClaim) key() string { return c.issuer }

func (c *pgpClaim) weak() string {
	switch c.algorithm {
	case packet.PubKeyAlgoRSA, packet.PubKeyAlgoRSASignOnly, packet.PubKeyAlgoECDSA, packet.PubKeyAlgoEdDSA, packet.PubKeyAlgoEd25519:
	default:
		return algorithmName(c.algorithm)
	}
	if hash, ok := openpgp.HashIdToHash(c.hash); !ok || !isStrong(hash) {
		return fmt.Sprintf("digest algorithm %d", c.hash)
	}
	return ""
}

// isStrong says whether a digest may carry a signature of a commit, or one of a
// key on itself.
func isStrong(hash crypto.Hash) bool {
	return hash == crypto.SHA256 || hash == crypto.SHA384 || hash == crypto.SHA512
}

func (c *pgpClaim) signedAt(Commit) time.Time { return c.made }

func (c *pgpClaim) check(payload []byte, k *key) error {
	return guard(func() error { return c.verify(payload, k.pgp) })
}

func (c *pgpClaim) verify(payload []byte, public *packet.PublicKey) error {
	if n := c.parsed.RSASignature; n != nil && !isShortest(n) {
		if size, err := public.BitLength(); err != nil || len(n.Bytes()) != (int(size)+7)/8 {
			return errors.New("is not as long as its key")
		}
	}
	// Go-crypto leaves the two bytes of the digest in a version 4 packet alone;
	// gpg refuses a wrong one, and so do we.
	tag, err := c.parsed.PrepareVerify()
	if err != nil {
		return fmt.Errorf("does not verify: %w", err)
	}
	tag.Write(payload)
	if err := packet.VerifyHashTag(tag, c.parsed); err != nil {
		return fmt.Errorf("does not verify: %w", err)
	}
	digest, err := c.parsed.PrepareVerify()
	if err != nil {
		return fmt.Errorf("does not verify: %w", err)
	}
	digest.Write(payload)
	if err := public.VerifySignature(digest, c.parsed); err != nil {
		return fmt.Errorf("does not verify: %w", err)
	}
	return nil
}
