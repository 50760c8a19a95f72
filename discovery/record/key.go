package record

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Key is a member's private key. It prints as its fingerprint only.
type Key struct {
	signer ssh.Signer
}

// NewKey makes an ed25519 key: the PEM text that ssh-keygen takes for a private
// key, to be kept in a Secret, and the line "ssh-ed25519 AAAA..." for the cluster
// entry.
func NewKey() (private []byte, public string, err error) {
	_, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", fmt.Errorf("make a member key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(secret, "")
	if err != nil {
		return nil, "", errors.New("make a member key: it can't be encoded")
	}
	private = pem.EncodeToMemory(block)
	key, err := ParseKey(private)
	if err != nil {
		return nil, "", err
	}
	return private, key.Public(), nil
}

// ParseKey reads what NewKey gave. No error holds anything of the text.
func ParseKey(private []byte) (Key, error) {
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		return Key{}, errors.New("member key: it is not an OpenSSH private key without passphrase: delete its Secret to have a new one made")
	}
	if signer.PublicKey().Type() != ssh.KeyAlgoED25519 {
		return Key{}, errors.New("member key: it is not an ed25519 key: delete its Secret to have a new one made")
	}
	return Key{signer: signer}, nil
}

// Public is the line "ssh-ed25519 AAAA..." for the cluster entry.
func (k Key) Public() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.signer.PublicKey())))
}

// Fingerprint is "SHA256:" and base64, as ssh-keygen -l shows it.
func (k Key) Fingerprint() string { return ssh.FingerprintSHA256(k.signer.PublicKey()) }

// Format writes the fingerprint for every verb: %+v would show the key.
func (k Key) Format(f fmt.State, _ rune) {
	if k.signer == nil {
		_, _ = io.WriteString(f, "no member key")
		return
	}
	_, _ = io.WriteString(f, "member key "+k.Fingerprint())
}

// Fingerprint is that of a line "ssh-ed25519 AAAA...".
func Fingerprint(public string) (string, error) {
	key, err := parsePublic(public)
	if err != nil {
		return "", err
	}
	return ssh.FingerprintSHA256(key), nil
}

func parsePublic(line string) (ssh.PublicKey, error) {
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil || len(options) > 0 || len(rest) > 0 || key.Type() != ssh.KeyAlgoED25519 {
		return nil, malformed(`a member key is not one line "ssh-ed25519 AAAA..."`)
	}
	return key, nil
}
