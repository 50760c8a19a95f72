package trust

import (
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	// sshFingerprint begins the fingerprint of an SSH key.
	sshFingerprint = "SHA256:"
	minRSA         = 2048
	maxRSA         = 16384
)

// parseSSHKey reads "type base64 [comment]" or a line of ssh-keygen(1), ALLOWED
// SIGNERS: "principals [options] type base64 [comment]". The principals say
// nothing here: the file's name is the signer's.
func parseSSHKey(text string) ([]*key, error) {
	line, err := onlyLine(text)
	if err != nil {
		return nil, err
	}
	k := &key{}
	kind, rest := cutField(line)
	if !isKeyType(kind) {
		kind, rest = cutField(rest)
	}
	if !isKeyType(kind) {
		if err := k.parseOptions(kind); err != nil {
			return nil, err
		}
		kind, rest = cutField(rest)
	}
	if isCertificate(kind) {
		return nil, errors.New("it is a certificate: put the key itself here")
	}
	if !isKeyType(kind) {
		return nil, errors.New("it is not an SSH public key: NAME.pub holds one line of ssh-keygen's")
	}
	encoded, _ := cutField(rest)
	blob, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return nil, errors.New("its key is not base64")
	}
	k.ssh, err = ssh.ParsePublicKey(blob)
	if err != nil {
		return nil, fmt.Errorf("its key can't be read: %w", err)
	}
	if k.ssh.Type() != kind {
		return nil, fmt.Errorf("it is called %s and is of type %s", kind, k.ssh.Type())
	}
	k.id = ssh.FingerprintSHA256(k.ssh)
	k.Fingerprint = k.id
	k.weak = weakSSHKey(k.ssh)
	return []*key{k}, nil
}

func onlyLine(text string) (string, error) {
	if strings.Contains(text, "PRIVATE KEY") {
		return "", errors.New("it is a private key: take it out, and never use it again")
	}
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 {
		return "", fmt.Errorf("it holds %d lines: a file holds one key", len(lines))
	}
	if strings.ContainsFunc(lines[0], isControl) {
		return "", errors.New("it holds control characters")
	}
	return lines[0], nil
}

// cutField cuts line at its first space outside of quotes.
func cutField(line string) (field, rest string) {
	quoted := false
	for i, r := range line {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ' ' && !quoted:
			return line[:i], strings.TrimLeft(line[i:], " ")
		}
	}
	return line, ""
}

// keyAlgoDSA is RFC 4253's name for DSA, which is known here only to be refused.
const keyAlgoDSA = "ssh-dss"

func isKeyType(field string) bool {
	return isCertificate(field) || slices.Contains([]string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256, ssh.KeyAlgoECDSA256,
		ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA, keyAlgoDSA,
	}, field)
}

func isCertificate(field string) bool {
	return strings.HasSuffix(field, "-cert-v01@openssh.com")
}

// parseOptions reads the options of an allowed-signers line.
func (k *key) parseOptions(text string) error {
	seen := map[string]bool{}
	for text != "" {
		var option string
		option, text = cutOption(text)
		name, value, _ := strings.Cut(option, "=")
		name = strings.ToLower(name)
		if seen[name] {
			return fmt.Errorf("option %q stands twice", name)
		}
		seen[name] = true
		if err := k.parseOption(name, value); err != nil {
			return err
		}
	}
	if !k.until.IsZero() && !k.from.Before(k.until) {
		return errors.New("valid-after is not before valid-before")
	}
	return nil
}

func cutOption(text string) (option, rest string) {
	quoted := false
	for i, r := range text {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ',' && !quoted:
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

func (k *key) parseOption(name, value string) (err error) {
	plain, quoted := strings.CutPrefix(value, `"`)
	plain, closed := strings.CutSuffix(plain, `"`)
	switch {
	case name != "namespaces" && name != "valid-after" && name != "valid-before":
		err = fmt.Errorf("option %q is not one of namespaces, valid-after and valid-before", name)
	case !quoted || !closed || strings.Contains(plain, `"`):
		err = fmt.Errorf(`option %s has no value in quotes`, name)
	case name == "valid-after":
		k.from, err = parseOptionTime(plain)
	case name == "valid-before":
		k.until, err = parseOptionTime(plain)
	case !slices.Contains(strings.Split(plain, ","), sshNamespace) || strings.ContainsAny(plain, "!*?"):
		err = fmt.Errorf("option namespaces has to name %q, without patterns", sshNamespace)
	}
	return err
}

// parseOptionTime reads YYYYMMDD[HHMM[SS]][Z]. It is UTC in any case: a cluster
// has no local time.
func parseOptionTime(value string) (time.Time, error) {
	digits := strings.TrimSuffix(value, "Z")
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(digits) != len(layout) {
			continue
		}
		if t, err := time.Parse(layout, digits); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("time %q is not YYYYMMDD[HHMM[SS]][Z]", value)
}

// weakSSHKey says why nothing that the key signs is taken, or nothing.
func weakSSHKey(public ssh.PublicKey) string {
	if public.Type() == keyAlgoDSA {
		return "DSA key"
	}
	if public, ok := rsaKey(public); ok {
		return weakRSA(public.N.BitLen())
	}
	return ""
}

func rsaKey(public ssh.PublicKey) (*rsa.PublicKey, bool) {
	crypto, ok := public.(ssh.CryptoPublicKey)
	if !ok {
		return nil, false
	}
	key, ok := crypto.CryptoPublicKey().(*rsa.PublicKey)
	return key, ok
}

func weakRSA(bits int) string {
	if bits < minRSA || bits > maxRSA {
		return fmt.Sprintf("RSA key of %d bits", bits)
	}
	return ""
}
