package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

const (
	sshBegin     = "-----BEGIN SSH SIGNATURE-----\n"
	sshEnd       = "\n-----END SSH SIGNATURE-----"
	sshNamespace = "git"
)

// sshClaim is a signature in OpenSSH's format (PROTOCOL.sshsig).
type sshClaim struct {
	blob        []byte
	fingerprint string
	namespace   string
	hash        string
	algorithm   string
	// size is the length of the innermost signature, in bytes.
	size int
}

// sshBlob is the signature's wire format, with the public key and the inner
// signature left as bytes: the key is looked up before it is parsed.
type sshBlob struct {
	Magic     [6]byte
	Version   uint32
	PublicKey []byte
	Namespace string
	Reserved  []byte
	Hash      string
	Signature []byte
}

func parseSSHClaim(text string) (claim, error) {
	blob, err := unarmorSSH(text)
	if err != nil {
		return nil, err
	}
	var b sshBlob
	if err := ssh.Unmarshal(blob, &b); err != nil {
		return nil, errors.New("is not an SSH signature inside")
	}
	if string(b.Magic[:]) != "SSHSIG" || b.Version != 1 || len(b.Reserved) > 0 {
		return nil, errors.New("is not an SSH signature of version 1")
	}
	var inner ssh.Signature
	if err := ssh.Unmarshal(b.Signature, &inner); err != nil {
		return nil, errors.New("is not an SSH signature inside")
	}
	if err := checkInner(inner); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b.PublicKey)
	return sshClaim{
		blob:        blob,
		fingerprint: sshFingerprint + base64.RawStdEncoding.EncodeToString(sum[:]),
		namespace:   b.Namespace,
		hash:        b.Hash,
		algorithm:   inner.Format,
		size:        len(inner.Blob),
	}, nil
}

// unarmorSSH undoes the armor: lines of 70 characters (ssh-keygen) or 64 (Go's
// encoder, which GitLab uses), and an empty last line where GitLab writes one.
func unarmorSSH(text string) ([]byte, error) {
	body, ok := strings.CutPrefix(strings.TrimSuffix(text, "\n"), sshBegin)
	body, ok2 := strings.CutSuffix(body, sshEnd)
	if !ok || !ok2 {
		return nil, errors.New("has something before BEGIN or after END")
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(body)
	if err != nil {
		return nil, errors.New("is not base64 inside")
	}
	encoded := base64.StdEncoding.EncodeToString(blob)
	if body != wrap(encoded, 70) && body != wrap(encoded, 64) {
		return nil, errors.New("is not wrapped at 70 or 64 characters")
	}
	return blob, nil
}

func wrap(text string, width int) string {
	var b strings.Builder
	for ; len(text) > width; text = text[width:] {
		b.WriteString(text[:width] + "\n")
	}
	return b.String() + text
}

// checkInner refuses what could be written in more than one way.
func checkInner(inner ssh.Signature) error {
	if strings.HasPrefix(inner.Format, "sk-") {
		// flags and counter of the security key follow.
		if len(inner.Rest) != 5 {
			return errors.New("has no flags and counter of its security key")
		}
	} else if len(inner.Rest) > 0 {
		return errors.New("has something after it")
	}
	if !strings.Contains(inner.Format, "ecdsa") {
		return nil
	}
	var point struct{ R, S *big.Int }
	if err := ssh.Unmarshal(inner.Blob, &point); err != nil || !bytes.Equal(ssh.Marshal(point), inner.Blob) {
		return errors.New("is not encoded in the shortest form")
	}
	return nil
}

func (c sshClaim) key() string { return c.fingerprint }

func (c sshClaim) weak() string {
	if c.hash != sshsig.HashSHA256.String() && c.hash != sshsig.HashSHA512.String() {
		return fmt.Sprintf("digest %q", c.hash)
	}
	if c.algorithm == ssh.KeyAlgoRSA {
		return "RSA with SHA-1"
	}
	return ""
}

// signedAt is the committer's time: an SSH signature carries none.
func (c sshClaim) signedAt(commit Commit) time.Time { return commit.CommittedAt }

func (c sshClaim) check(payload []byte, k *key) error {
	if c.namespace != sshNamespace {
		return fmt.Errorf("is made for namespace %q, not for %q", c.namespace, sshNamespace)
	}
	if public, ok := rsaKey(k.ssh); ok && c.size != public.Size() {
		return errors.New("is not as long as its key")
	}
	sig, err := sshsig.ParseSignature(c.blob)
	if err != nil {
		return fmt.Errorf("can't be read: %w", err)
	}
	if err := sshsig.Verify(bytes.NewReader(payload), sig, k.ssh, sig.HashAlgorithm, sshNamespace); err != nil {
		return fmt.Errorf("does not verify: %w", err)
	}
	return nil
}
