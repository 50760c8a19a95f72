package trust

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
	"github.com/hiddeco/sshsig"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/fleetling/fleetling/sources/gittest"
)

// noon is when the commits of most tests are made.
var noon = time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)

// newRepo makes a repository whose next commit is made at noon.
func newRepo(tb testing.TB) *gittest.Repo {
	tb.Helper()
	r := gittest.NewRepo(tb)
	r.Time = noon
	return r
}

func sshKey(tb testing.TB, name string) *gittest.SSHKey {
	tb.Helper()
	return gittest.NewSSHKey(tb, name, "ed25519")
}

// signers reads the keys as a signers folder would hold them.
func signers(tb testing.TB, keys ...gittest.Key) Signers {
	tb.Helper()
	files := fstest.MapFS{}
	for _, k := range keys {
		files["signers/"+k.File()] = &fstest.MapFile{Data: []byte(k.Public())}
	}
	s, problems, err := ReadSigners(files, "signers")
	require.NoError(tb, err)
	require.Empty(tb, problems)
	return s
}

func setSigners(r *gittest.Repo, keys ...gittest.Key) {
	r.Remove("signers")
	for _, k := range keys {
		r.Write("signers/"+k.File(), k.Public())
	}
}

// faked makes gpg believe that it is at.
func faked(at time.Time) []string {
	return []string{"--faked-system-time", at.UTC().Format("20060102T150405") + "!"}
}

// pgpKeyAt makes a key at a time of the past.
func pgpKeyAt(tb testing.TB, name, algo, expire string, at time.Time) *gittest.PGPKey {
	tb.Helper()
	home, err := os.MkdirTemp("", "gpg") //nolint:usetesting // gpg-agent's socket path is bounded: a short folder
	require.NoError(tb, err)
	tb.Cleanup(func() {
		_ = exec.CommandContext(context.WithoutCancel(tb.Context()), "gpgconf", "--homedir", home, "--kill", "all").Run()
		_ = os.RemoveAll(home)
	})
	k := &gittest.PGPKey{Name: name, Home: home}
	k.GPG(tb, "", append(faked(at), "--passphrase", "", "--quick-generate-key", name+" <"+name+"@example.com>", algo, "sign", expire)...)
	k.Fingerprint = fingerprints(tb, k)[0]
	return k
}

// fingerprints gives those of the primary key and its subkeys.
func fingerprints(tb testing.TB, k *gittest.PGPKey) (all []string) {
	tb.Helper()
	for line := range strings.Lines(k.GPG(tb, "", "--with-colons", "--list-keys")) {
		if rest, ok := strings.CutPrefix(line, "fpr:::::::::"); ok {
			all = append(all, strings.Trim(rest, ":\n"))
		}
	}
	return all
}

// commitAt commits with committer time and gpg's clock at a time of the past.
func commitAt(tb testing.TB, r *gittest.Repo, message string, k *gittest.PGPKey, at time.Time, args ...string) string {
	tb.Helper()
	program := filepath.Join(k.Home, "faked.sh")
	script := "#!/bin/sh\nexec gpg --homedir " + k.Home + " --batch --pinentry-mode loopback " + strings.Join(append(faked(at), args...), " ") + ` "$@"` + "\n"
	require.NoError(tb, os.WriteFile(program, []byte(script), 0o755))
	r.Time = at
	r.Git("add", "--all")
	r.Git("-c", "gpg.program="+program, "-c", "user.signingKey="+k.Fingerprint+"!", "commit", "--quiet", "--allow-empty", "--message", message, "--gpg-sign")
	return r.Head()
}

// raw gives the stored bytes of a commit.
func raw(tb testing.TB, r *gittest.Repo, id string) string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "git", "cat-file", "commit", id)
	cmd.Dir = r.Dir
	out, err := cmd.Output()
	require.NoError(tb, err)
	return string(out)
}

// parse reads a commit that has to be well formed.
func parse(tb testing.TB, raw string) Commit {
	tb.Helper()
	c, err := ParseCommit(objectID(raw), []byte(raw))
	require.NoError(tb, err)
	return c
}

// signed gives payload as ssh-keygen signs it.
func signed(tb testing.TB, payload string, k *gittest.SSHKey, args ...string) string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "ssh-keygen", append([]string{"-Y", "sign", "-q", "-n", "git", "-f", k.Private}, args...)...)
	cmd.Stdin = strings.NewReader(payload)
	out, err := cmd.Output()
	require.NoError(tb, err)
	return withSignature(payload, strings.TrimSuffix(string(out), "\n"))
}

// withSignature puts a signature into payload, as its last header.
func withSignature(payload, signature string) string {
	headers, message, _ := strings.Cut(payload, "\n\n")
	return headers + "\ngpgsig " + strings.ReplaceAll(signature, "\n", "\n ") + "\n\n" + message
}

// cutSignature gives a commit's payload and its signature.
func cutSignature(tb testing.TB, raw string) (payload, signature string) {
	tb.Helper()
	c := parse(tb, raw)
	require.NotEmpty(tb, c.signature)
	return string(c.Payload), c.signature
}

// sshSignature writes a signature by hand as ssh-keygen formats it.
func sshSignature(key ssh.PublicKey, inner *ssh.Signature) string {
	blob := ssh.Marshal(sshBlob{
		Magic: [6]byte([]byte("SSHSIG")), Version: 1, PublicKey: key.Marshal(),
		Namespace: "git", Hash: "sha256", Signature: ssh.Marshal(inner),
	})
	return sshBegin + wrap(base64.StdEncoding.EncodeToString(blob), 70) + sshEnd
}

// sshMessage is what an SSH key signs for payload.
func sshMessage(payload string) []byte {
	digest := sha256.Sum256([]byte(payload))
	return append([]byte("SSHSIG"), ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Digest                    []byte
	}{"git", "", "sha256", digest[:]})...)
}

// securityKey is a FIDO key in software: its owner touches it, or does not.
type securityKey struct {
	public  ssh.PublicKey
	private ed25519.PrivateKey
	line    string
}

func newSecurityKey(tb testing.TB) securityKey {
	tb.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(tb, err)
	blob := ssh.Marshal(struct {
		Type        string
		Public      []byte
		Application string
	}{ssh.KeyAlgoSKED25519, public, "ssh:"})
	key, err := ssh.ParsePublicKey(blob)
	require.NoError(tb, err)
	return securityKey{public: key, private: private, line: string(ssh.MarshalAuthorizedKey(key))}
}

func (k securityKey) sign(payload string, flags byte) string {
	application, message := sha256.Sum256([]byte("ssh:")), sha256.Sum256(sshMessage(payload))
	tail := []byte{flags, 0, 0, 0, 7}
	data := bytes.Join([][]byte{application[:], tail, message[:]}, nil)
	inner := &ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: ed25519.Sign(k.private, data), Rest: tail}
	return withSignature(payload, sshSignature(k.public, inner))
}

// goPGPKey is an OpenPGP key of the library's, made at noon.
func goPGPKey(tb testing.TB, config *packet.Config) (entity *openpgp.Entity, public string) {
	tb.Helper()
	config.Time = func() time.Time { return noon }
	entity, err := openpgp.NewEntity("forge", "", "forge@example.com", config)
	require.NoError(tb, err)
	return entity, armored(tb, openpgp.PublicKeyType, func(b *bytes.Buffer) error { return entity.Serialize(b) })
}

func armored(tb testing.TB, kind string, write func(*bytes.Buffer) error) string {
	tb.Helper()
	var body, text bytes.Buffer
	require.NoError(tb, write(&body))
	w, err := armor.Encode(&text, kind, nil)
	require.NoError(tb, err)
	_, err = w.Write(body.Bytes())
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return text.String()
}

// likeGitHub signs as the web interface of GitHub does: a packet header of the
// new format, the key's 64-bit id and no fingerprint, the number with its
// leading zeros, an empty line at the end.
func likeGitHub(tb testing.TB, payload string, entity *openpgp.Entity) string {
	tb.Helper()
	hashed := binary.BigEndian.AppendUint32([]byte{5, subCreation}, uint32(noon.Unix()))
	hashed = binary.BigEndian.AppendUint64(append(hashed, 9, subIssuer), entity.PrimaryKey.KeyId)
	contents := append([]byte{4, 0, byte(packet.PubKeyAlgoRSA), 8, 0, byte(len(hashed))}, hashed...)
	trailer := binary.BigEndian.AppendUint32([]byte{4, 0xff}, uint32(len(contents)))
	digest := sha256.Sum256(bytes.Join([][]byte{[]byte(payload), contents, trailer}, nil))
	number, err := rsa.SignPKCS1v15(nil, entity.PrivateKey.PrivateKey.(*rsa.PrivateKey), crypto.SHA256, digest[:])
	require.NoError(tb, err)
	contents = append(contents, 0, 0, digest[0], digest[1])
	contents = binary.BigEndian.AppendUint16(contents, uint16(8*len(number)))
	text := armored(tb, openpgp.SignatureType, func(b *bytes.Buffer) error {
		return (&packet.OpaquePacket{Tag: tagSignature, Contents: append(contents, number...)}).Serialize(b)
	})
	return withSignature(payload, text+"\n")
}

// likeGitLab signs as the web interface of GitLab does: Go's encoder, with
// lines of 64 characters, and an empty line at the end.
func likeGitLab(tb testing.TB, payload string, signer ssh.Signer) string {
	tb.Helper()
	sig, err := sshsig.Sign(strings.NewReader(payload), signer, sshsig.HashSHA512, "git")
	require.NoError(tb, err)
	return withSignature(payload, string(sshsig.Armor(sig)))
}

// payloadAt is an unsigned commit of the empty tree.
func payloadAt(at time.Time) string {
	const who = "A U Thor <author@example.com>"
	return fmt.Sprintf("tree %s\nauthor %s %d +0000\ncommitter %s %d +0000\n\nmessage\n", emptyTree, who, at.Unix(), who, at.Unix())
}

// child is an unsigned commit of the empty tree on top of another.
func child(parent string) string {
	return strings.Replace(payloadAt(noon), "\nauthor", "\nparent "+parent+"\nauthor", 1)
}

func privateKey(tb testing.TB, k *gittest.SSHKey) ssh.Signer {
	tb.Helper()
	pem, err := os.ReadFile(k.Private)
	require.NoError(tb, err)
	signer, err := ssh.ParsePrivateKey(pem)
	require.NoError(tb, err)
	return signer
}
