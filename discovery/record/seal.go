package record

import (
	"bytes"
	"encoding/pem"
	"fmt"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// Kind is the SSHSIG namespace: what is signed as one kind is no other kind.
type Kind string

// The two kinds of sealed bytes.
const (
	KindRecord Kind = "fleetling-record"
	KindStatus Kind = "fleetling-status"
)

const (
	armorBegin = "-----BEGIN " + sshsig.PEMType + "-----\n"
	armorEnd   = "-----END " + sshsig.PEMType + "-----\n"
)

// signature is PROTOCOL.sshsig's blob, with the key left as bytes: it is compared
// before anything is computed with it.
type signature struct {
	Magic     [6]byte
	Version   uint32
	PublicKey []byte
	Namespace string
	Reserved  []byte
	Hash      string
	Signature []byte
}

// Seal gives the armored signature and then the payload. An ed25519 signature
// does not depend on chance: same payload and key, same bytes.
func Seal(kind Kind, payload []byte, key Key) ([]byte, error) {
	if key.signer == nil {
		return nil, fmt.Errorf("seal %s: there is no key", kind)
	}
	sig, err := sshsig.Sign(bytes.NewReader(payload), key.signer, sshsig.HashSHA512, string(kind))
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", kind, err)
	}
	sealed := append(sshsig.Armor(sig), payload...)
	if len(sealed) > MaxSealed {
		return nil, fmt.Errorf("seal %s: %w", kind, tooLarge("bytes", len(sealed), MaxSealed))
	}
	return sealed, nil
}

// Split gives the armored signature and the payload, which are parts of sealed.
// It says nothing of the signature.
func Split(sealed []byte) (armor, payload []byte, err error) {
	if len(sealed) > MaxSealed {
		return nil, nil, tooLarge("bytes", len(sealed), MaxSealed)
	}
	at := bytes.Index(sealed[:min(len(sealed), maxArmor)], []byte(armorEnd))
	if !bytes.HasPrefix(sealed, []byte(armorBegin)) || at < 0 {
		return nil, nil, malformed("it does not begin with an SSH signature")
	}
	at += len(armorEnd)
	return sealed[:at], sealed[at:], nil
}

// Open gives the payload, which is a part of sealed, and the fingerprint of the
// key that has signed it. keys are one or two lines "ssh-ed25519 AAAA...".
func Open(kind Kind, sealed []byte, keys []string) (payload []byte, fingerprint string, err error) {
	armor, payload, err := Split(sealed)
	if err != nil {
		return nil, "", fmt.Errorf("open %s: %w", kind, err)
	}
	fingerprint, err = verify(kind, armor, payload, keys)
	if err != nil {
		return nil, "", fmt.Errorf("open %s: %w", kind, err)
	}
	return payload, fingerprint, nil
}

func verify(kind Kind, armor, payload []byte, keys []string) (string, error) {
	raw, blob, err := unarmor(armor)
	if err != nil {
		return "", err
	}
	key, err := match(blob.PublicKey, keys)
	if err != nil {
		return "", err
	}
	if blob.Namespace != string(kind) {
		return "", fmt.Errorf("%w: it is made for %.80q", ErrSignature, blob.Namespace)
	}
	if blob.Hash != sshsig.HashSHA512.String() {
		return "", fmt.Errorf("%w: its digest is %.80q, not sha512", ErrSignature, blob.Hash)
	}
	sig, err := sshsig.ParseSignature(raw)
	if err != nil {
		return "", malformed("its signature can't be read")
	}
	// What follows the inner signature is not signed: it would make a second blob
	// of one record.
	if len(sig.Signature.Rest) > 0 {
		return "", malformed("something follows its signature")
	}
	if err := sshsig.Verify(bytes.NewReader(payload), sig, key, sshsig.HashSHA512, string(kind)); err != nil {
		return "", fmt.Errorf("%w: it does not verify", ErrSignature)
	}
	return ssh.FingerprintSHA256(key), nil
}

// unarmor takes one form of armor only.
func unarmor(armor []byte) (raw []byte, blob signature, err error) {
	block, rest := pem.Decode(armor)
	if block == nil || len(rest) > 0 || !bytes.Equal(pem.EncodeToMemory(block), armor) || len(block.Headers) > 0 {
		return nil, signature{}, malformed("its signature is not armored as it should be")
	}
	if err := ssh.Unmarshal(block.Bytes, &blob); err != nil || len(blob.Reserved) > 0 {
		return nil, signature{}, malformed("its signature can't be read")
	}
	return block.Bytes, blob, nil
}

// match finds the key among those of the member.
func match(public []byte, keys []string) (ssh.PublicKey, error) {
	if len(keys) > maxKeys {
		return nil, tooLarge("keys", len(keys), maxKeys)
	}
	for _, line := range keys {
		key, err := parsePublic(line)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(key.Marshal(), public) {
			return key, nil
		}
	}
	return nil, fmt.Errorf("%w: it is signed by a key that the cluster's entry does not have", ErrUnknownKey)
}
