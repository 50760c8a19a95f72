package capi

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	memberSecretName = "fleetling-member-key"
	memberKeyKey     = "identity"
	credentialsKey   = "credentials.yaml"
	maxKeyLength     = 64 << 10
)

// Credentials are what one cluster needs beside its identity. Either may be
// missing.
type Credentials struct {
	// Git are files by the names of a credentials folder: username, password,
	// bearerToken, ca.crt, tls.crt, tls.key, identity, known_hosts.
	Git map[string][]byte
	// MemberKey is an ed25519 private key in OpenSSH's or PEM form, without a
	// passphrase.
	MemberKey []byte
}

// Secrets gives the objects that bring credentials, by cluster name, to the
// clusters of entries. They hold secrets: they go into a file of their own.
func Secrets(entries []Entry, credentials map[string]Credentials, to Target) ([]Object, error) {
	var made []Object
	for _, entry := range entries {
		inside, err := credentials[entry.Name].objects(entry)
		if err != nil {
			return nil, fmt.Errorf("credentials of %s: %w", entry.Name, err)
		}
		if len(inside) == 0 {
			continue
		}
		text, err := Text(inside)
		if err != nil {
			return nil, err
		}
		source := resource("Secret", to.namespace(entry), credentialsPrefix+entry.Name, encoded(map[string][]byte{credentialsKey: text}))
		source.Object["type"] = secretType
		made = append(made, source, to.setOf(entry, source))
	}
	return made, errors.Join(to.check(), refuse(made))
}

func (c Credentials) objects(entry Entry) ([]Object, error) {
	var made []Object
	for _, name := range slices.Sorted(maps.Keys(c.Git)) {
		if !slices.Contains(gitKeys(), name) {
			return nil, fmt.Errorf("file %.80q is none of %s: take it away", name, strings.Join(gitKeys(), ", "))
		}
	}
	if len(c.Git) > 0 {
		made = append(made, resource("Secret", agentNamespace, gitSecretName, encoded(c.Git)))
	}
	if c.MemberKey == nil {
		return made, nil
	}
	if err := checkMemberKey(c.MemberKey, entry); err != nil {
		return nil, err
	}
	return append(made, resource("Secret", agentNamespace, memberSecretName, encoded(map[string][]byte{memberKeyKey: c.MemberKey}))), nil
}

func gitKeys() []string {
	return []string{"bearerToken", "ca.crt", "identity", "known_hosts", "password", "tls.crt", "tls.key", "username"}
}

// checkMemberKey refuses a key that no peer would believe.
func checkMemberKey(private []byte, entry Entry) error {
	if len(private) > maxKeyLength {
		return errors.New("the member key is too long to be one")
	}
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		return errors.New("the member key is not a private key without a passphrase")
	}
	public := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	if !slices.Contains(entry.MemberKeys, public) {
		return entry.fault("annotation fleetling.dev/member-keys does not have the public half of the member key: add this line: %s", public)
	}
	return nil
}

func encoded(data map[string][]byte) map[string]any {
	text := map[string]any{}
	for key, value := range data {
		text[key] = base64.StdEncoding.EncodeToString(value)
	}
	return text
}
