package record_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hiddeco/sshsig"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/fleetling/fleetling/discovery/record"
)

func newKey(tb testing.TB) record.Key {
	tb.Helper()
	private, public, err := record.NewKey()
	require.NoError(tb, err)
	key, err := record.ParseKey(private)
	require.NoError(tb, err)
	require.Equal(tb, public, key.Public())
	return key
}

func seal(tb testing.TB, kind record.Kind, payload string, key record.Key) []byte {
	tb.Helper()
	sealed, err := record.Seal(kind, []byte(payload), key)
	require.NoError(tb, err)
	return sealed
}

func TestWhatIsSealedIsOpenedByItsKeyAlone(t *testing.T) {
	ours, other := newKey(t), newKey(t)
	sealed := seal(t, record.KindRecord, "payload", ours)

	payload, fingerprint, err := record.Open(record.KindRecord, sealed, []string{other.Public(), ours.Public() + " a comment"})
	require.NoError(t, err)
	assert.Equal(t, "payload", string(payload))
	assert.Equal(t, ours.Fingerprint(), fingerprint)
	fingerprint, err = record.Fingerprint(ours.Public())
	require.NoError(t, err)
	assert.Equal(t, ours.Fingerprint(), fingerprint)

	assert.Equal(t, sealed, seal(t, record.KindRecord, "payload", ours), "same payload and key, same bytes")

	for name, tc := range map[string]struct {
		kind   record.Kind
		sealed []byte
		keys   []string
		want   error
	}{
		"no keys":              {record.KindRecord, sealed, nil, record.ErrUnknownKey},
		"another key":          {record.KindRecord, sealed, []string{other.Public()}, record.ErrUnknownKey},
		"a key that is none":   {record.KindRecord, sealed, []string{"ssh-ed25519 AAAA"}, record.ErrMalformed},
		"three keys":           {record.KindRecord, sealed, []string{other.Public(), other.Public(), ours.Public()}, record.ErrTooLarge},
		"a record as a status": {record.KindStatus, sealed, []string{ours.Public()}, record.ErrSignature},
		"a status as a record": {record.KindRecord, seal(t, record.KindStatus, "payload", ours), []string{ours.Public()}, record.ErrSignature},
		"another payload":      {record.KindRecord, append(bytes.Clone(sealed), 'x'), []string{ours.Public()}, record.ErrSignature},
		"no payload":           {record.KindRecord, bytes.TrimSuffix(sealed, []byte("payload")), []string{ours.Public()}, record.ErrSignature},
		"no signature":         {record.KindRecord, []byte("payload"), []string{ours.Public()}, record.ErrMalformed},
		"nothing":              {record.KindRecord, nil, []string{ours.Public()}, record.ErrMalformed},
		"the armor far away":   {record.KindRecord, append([]byte(strings.Repeat("\n", 2000)), sealed...), []string{ours.Public()}, record.ErrMalformed},
		"too large":            {record.KindRecord, append(bytes.Clone(sealed), make([]byte, record.MaxSealed)...), []string{ours.Public()}, record.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			payload, fingerprint, err := record.Open(tc.kind, tc.sealed, tc.keys)
			require.ErrorIs(t, err, tc.want)
			assert.Empty(t, payload)
			assert.Empty(t, fingerprint)
		})
	}
}

func TestNobodyElseCanMakeASecondBlobOfOneRecord(t *testing.T) {
	key := newKey(t)
	sealed := seal(t, record.KindRecord, "payload", key)
	armor, payload, err := record.Split(sealed)
	require.NoError(t, err)
	block, _ := pem.Decode(armor)
	require.NotNil(t, block)

	rewrap := func(change func(*pem.Block)) []byte {
		twin := &pem.Block{Type: block.Type, Bytes: bytes.Clone(block.Bytes)}
		change(twin)
		return pem.EncodeToMemory(twin)
	}
	for name, twin := range map[string][]byte{
		"windows line ends": bytes.ReplaceAll(armor, []byte("\n"), []byte("\r\n")),
		"an empty line":     bytes.Replace(armor, []byte("\n-----END"), []byte("\n\n-----END"), 1),
		"a space":           bytes.Replace(armor, []byte("\n-----END"), []byte(" \n-----END"), 1),
		"a header":          rewrap(func(b *pem.Block) { b.Headers = map[string]string{"A": "b"} }),
		"a byte after it":   rewrap(func(b *pem.Block) { b.Bytes = append(b.Bytes, 0) }),
		"a byte in the inner signature": rewrap(func(b *pem.Block) {
			// The last field is a length of four bytes and 83 bytes of signature.
			at := len(b.Bytes) - 83 - 1
			b.Bytes[at]++
			b.Bytes = append(b.Bytes, 0)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, armor, twin)
			_, _, err := record.Open(record.KindRecord, append(twin, payload...), []string{key.Public()})
			assert.Error(t, err)
		})
	}
}

func TestOnlyEd25519AndSHA512AreTaken(t *testing.T) {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(secret)
	require.NoError(t, err)
	sig, err := sshsig.Sign(strings.NewReader("payload"), signer, sshsig.HashSHA512, string(record.KindRecord))
	require.NoError(t, err)
	line := string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
	_, _, err = record.Open(record.KindRecord, append(sshsig.Armor(sig), "payload"...), []string{line})
	require.ErrorIs(t, err, record.ErrMalformed)

	block, err := ssh.MarshalPrivateKey(secret, "")
	require.NoError(t, err)
	_, err = record.ParseKey(pem.EncodeToMemory(block))
	require.ErrorContains(t, err, "ed25519")

	private, public, err := record.NewKey()
	require.NoError(t, err)
	signer, err = ssh.ParsePrivateKey(private)
	require.NoError(t, err)
	sig, err = sshsig.Sign(strings.NewReader("payload"), signer, sshsig.HashSHA256, string(record.KindRecord))
	require.NoError(t, err)
	_, _, err = record.Open(record.KindRecord, append(sshsig.Armor(sig), "payload"...), []string{public})
	require.ErrorIs(t, err, record.ErrSignature)
}

func TestSSHKeygenVerifiesASealedRecord(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	require.NoError(t, err, "apt-get install openssh-client")
	key := newKey(t)
	payload, err := sound().Encode()
	require.NoError(t, err)
	armor, rest, err := record.Split(seal(t, record.KindRecord, string(payload), key))
	require.NoError(t, err)

	dir := t.TempDir()
	signers, signature := filepath.Join(dir, "allowed_signers"), filepath.Join(dir, "record.sig")
	require.NoError(t, os.WriteFile(signers, []byte("eu-1 "+key.Public()+"\n"), 0o600))
	require.NoError(t, os.WriteFile(signature, armor, 0o600))
	verify := func(kind record.Kind, payload []byte) error {
		cmd := exec.CommandContext(t.Context(), keygen, "-Y", "verify", "-f", signers, "-I", "eu-1", "-n", string(kind), "-s", signature)
		cmd.Stdin = bytes.NewReader(payload)
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		return err
	}
	require.NoError(t, verify(record.KindRecord, rest))
	require.Error(t, verify(record.KindStatus, rest))
	require.Error(t, verify(record.KindRecord, append(bytes.Clone(rest), '\n')))
}

func TestSSHKeygenReadsTheKeyThatWasMade(t *testing.T) {
	private, public, err := record.NewKey()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, private, 0o600))
	out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-y", "-f", file).Output()
	require.NoError(t, err)
	assert.Equal(t, public, strings.TrimSpace(string(out)))
}

func TestAPrivateKeyIsInNoTextAndNoError(t *testing.T) {
	private, public, err := record.NewKey()
	require.NoError(t, err)
	key, err := record.ParseKey(private)
	require.NoError(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x"} {
		assert.Equal(t, "member key "+key.Fingerprint(), fmt.Sprintf(verb, key))
	}
	assert.Equal(t, "no member key", fmt.Sprint(record.Key{}))
	data, err := json.Marshal(map[string]any{"key": key})
	require.NoError(t, err)
	assert.JSONEq(t, `{"key":{}}`, string(data))

	half := private[:len(private)/2]
	_, err = record.ParseKey(half)
	require.Error(t, err)
	assert.NotContains(t, err.Error(), string(private[60:80]))
	assert.True(t, strings.HasPrefix(public, "ssh-ed25519 AAAA"))

	_, err = record.Seal(record.KindRecord, nil, record.Key{})
	require.ErrorContains(t, err, "there is no key")
}
