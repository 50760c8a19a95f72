package trust

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/big"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/gittest"
)

// G3: without any key, a signed commit can be given another id by changing what
// its signature does not cover. None of these forms is taken.
func TestKeylessEditsOfASignatureAreNotCanonical(t *testing.T) {
	ssh := signed(t, plain, sshKey(t, "alice"))
	pgp := fixture(t, "tools/gpg-2.4.commit")
	sq := fixture(t, "tools/sq-1.3-rfc4880.commit")
	for name, raw := range map[string]string{
		"a header for the other kind of repository": strings.Replace(ssh, "\ngpgsig ", "\ngpgsig-sha256 x\ngpgsig ", 1),
		"the same below it":                         withSignature(ssh, "x"),
		"a second signature":                        strings.Replace(pgp, "\n\nsigned", "\ngpgsig "+folded(t, pgp)+"\n\nsigned", 1),
		"a second block in one header":              edit(t, pgp, func(s string) string { return s + "\n" + s }),
		"a header after the signature":              strings.Replace(ssh, "\n\nmessage", "\nchange-id x\n\nmessage", 1),
		"an armor comment":                          edit(t, pgp, func(s string) string { return strings.Replace(s, "\n\n", "\nComment: x\n\n", 1) }),
		"an armor version":                          edit(t, pgp, func(s string) string { return strings.Replace(s, "\n\n", "\nVersion: GnuPG v2\n\n", 1) }),
		"no empty line after BEGIN":                 edit(t, pgp, func(s string) string { return strings.Replace(s, "\n\n", "\n", 1) }),
		"something before BEGIN":                    edit(t, pgp, func(s string) string { return "x\n" + s }),
		"something after END":                       edit(t, pgp, func(s string) string { return s + "\nx" }),
		"something after END of an SSH signature":   edit(t, ssh, func(s string) string { return s + "\nx" }),
		"two empty lines after END":                 edit(t, pgp, func(s string) string { return s + "\n\n" }),
		"two empty lines after END of an SSH one":   edit(t, ssh, func(s string) string { return s + "\n\n" }),
		"a space at the end of END":                 edit(t, pgp, func(s string) string { return s + " " }),
		"carriage returns":                          edit(t, pgp, func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }),
		"a wrong checksum":                          edit(t, pgp, func(s string) string { return s[:strings.LastIndex(s, "\n=")+2] + "AAAA" + pgpEnd }),
		"lines of another width":                    edit(t, pgp, rejoin),
		"lines of another width in an SSH one":      edit(t, ssh, func(s string) string { return rewrapSSH(s, 71) }),
		"one long line in an SSH one":               edit(t, ssh, func(s string) string { return rewrapSSH(s, 1<<20) }),
		"a line broken twice in an SSH one":         edit(t, ssh, func(s string) string { return strings.Replace(s, "\n", "\n\n", 2) }),
		"loose bits at the end of base64":           edit(t, ssh, looseBits),
		"another name in the armor":                 edit(t, pgp, func(s string) string { return strings.ReplaceAll(s, "PGP SIGNATURE", "PGP MESSAGE") }),
		"an X.509 signature":                        edit(t, pgp, func(s string) string { return strings.ReplaceAll(s, "PGP SIGNATURE", "SIGNED MESSAGE") }),
		"no base64":                                 edit(t, pgp, func(string) string { return pgpBegin + "\n!!!!" + pgpEnd }),
		"no base64 in an SSH one":                   edit(t, ssh, func(string) string { return sshBegin + "!!!!" + sshEnd }),
		"an empty header":                           edit(t, ssh, func(string) string { return "" }),
		"nothing inside":                            edit(t, pgp, func(string) string { return pgpBegin + "\n" + pgpEnd }),
		"nothing inside an SSH one":                 edit(t, ssh, func(string) string { return sshBegin + sshEnd }),

		"a packet with a longer length": editPacket(t, pgp, func(b []byte) []byte {
			return append(binary.BigEndian.AppendUint16([]byte{0x89}, uint16(len(b)-2)), b[2:]...)
		}),
		"a new packet with a longer length": editPacket(t, sq, func(b []byte) []byte {
			return append(binary.BigEndian.AppendUint32([]byte{0xc2, 0xff}, uint32(len(b)-2)), b[2:]...)
		}),
		"a packet of indefinite length":  editPacket(t, pgp, func(b []byte) []byte { return append([]byte{0x8b}, b[2:]...) }),
		"a second packet":                editPacket(t, pgp, func(b []byte) []byte { return append(b, b...) }),
		"a marker packet before it":      editPacket(t, pgp, func(b []byte) []byte { return append([]byte{0xca, 3, 'P', 'G', 'P'}, b...) }),
		"bytes after the number":         editPacket(t, pgp, func(b []byte) []byte { return append([]byte{b[0], b[1] + 1}, append(b[2:], 0)...) }),
		"a cut packet":                   editPacket(t, pgp, func(b []byte) []byte { return b[:len(b)-1] }),
		"a text signature":               editContents(t, pgp, func(b []byte) []byte { b[1] = 1; return b }),
		"version 3":                      editContents(t, pgp, func(b []byte) []byte { b[0] = 3; return b }),
		"version 6 with fields of 4":     editContents(t, pgp, func(b []byte) []byte { b[0] = 6; return b }),
		"another packet":                 editPacket(t, pgp, func(b []byte) []byte { return append([]byte{0xb4}, b[1:]...) }),
		"a comment outside of the hash":  editUnhashed(t, pgp, func([]byte) []byte { return []byte{2, 100, 'x'} }),
		"a notation beside the id":       editUnhashed(t, pgp, func(b []byte) []byte { return append(b, 2, subNotation, 'x') }),
		"another issuer's id":            editUnhashed(t, pgp, func(b []byte) []byte { b[9] ^= 1; return b }),
		"the issuer's id twice":          editUnhashed(t, pgp, func(b []byte) []byte { return append(b, b...) }),
		"the issuer's id in long form":   editUnhashed(t, pgp, func(b []byte) []byte { return append([]byte{0xff, 0, 0, 0, 9}, b[1:]...) }),
		"an expiry outside of the hash":  editUnhashed(t, pgp, func([]byte) []byte { return []byte{5, subExpiration, 0, 0, 0, 1} }),
		"broken subpackets":              editUnhashed(t, pgp, func(b []byte) []byte { b[0] = 200; return b }),
		"a number with leading zeros":    editNumber(t, pgp, leadingZero),
		"a number with more bits stated": editNumber(t, pgp, longerNumber),
	} {
		t.Run(name, func(t *testing.T) {
			require.NotContains(t, []string{ssh, pgp, sq}, raw)
			_, err := ParseCommit(objectID(raw), []byte(raw))
			assert.Equal(t, sources.NonCanonicalSignature, sources.ReasonOf(err), "%v", err)
		})
	}
}

// What a signature covers is the signer's own word; but it has to say once, and
// in the hashed part, when it was made and by whom.
func TestASignatureHasToCoverOneTimeAndOneIssuer(t *testing.T) {
	pgp := fixture(t, "tools/gpg-2.4.commit")
	issuer := append([]byte{22, subFingerprint, 4}, fromHex(t, "F57E79F55399033A5A2B173FA88178C6D1126767")...)
	id := append([]byte{9, subIssuer}, fromHex(t, "A88178C6D1126767")...)
	created := []byte{5, subCreation, 0x66, 0x5b, 0x0d, 0x40}
	other := bytes.Clone(id)
	other[9] ^= 1
	notation := []byte{10, subNotation, 0x80, 0, 0, 0, 0, 1, 0, 0, 'n'}
	version6 := bytes.Clone(issuer)
	version6[2] = 6
	for name, test := range map[string]struct {
		hashed [][]byte
		good   bool
	}{
		"as gpg writes it":             {[][]byte{issuer, created}, true},
		"as Sequoia writes it":         {[][]byte{created, id, issuer}, true},
		"as GitHub writes it":          {[][]byte{created, id}, true},
		"with a subpacket of any kind": {[][]byte{issuer, created, {2, 100, 1}}, true},
		"with two notations":           {[][]byte{issuer, created, notation, notation}, true},
		"no time":                      {[][]byte{issuer}, false},
		"a short time":                 {[][]byte{issuer, {4, subCreation, 1, 2, 3}}, false},
		"two times":                    {[][]byte{issuer, created, created}, false},
		"no issuer":                    {[][]byte{created}, false},
		"a short issuer":               {[][]byte{created, {3, subIssuer, 1, 2}}, false},
		"a short fingerprint":          {[][]byte{created, {3, subFingerprint, 4, 2}}, false},
		"an empty fingerprint":         {[][]byte{created, {1, subFingerprint}}, false},
		"a fingerprint and another id": {[][]byte{created, issuer, other}, false},
		"another id and a fingerprint": {[][]byte{created, other, issuer}, false},
		"a key of another version":     {[][]byte{created, version6}, false},
		"two fingerprints":             {[][]byte{created, issuer, issuer}, false},
		"an expiry":                    {[][]byte{created, issuer, {5, subExpiration, 0, 0, 0, 9}}, false},
		"something critical":           {[][]byte{created, issuer, {2, 0x80 | 100, 1}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			raw := editContents(t, pgp, func(contents []byte) []byte {
				start := 6 + int(binary.BigEndian.Uint16(contents[4:]))
				area := bytes.Join(test.hashed, nil)
				head := binary.BigEndian.AppendUint16(bytes.Clone(contents[:4]), uint16(len(area)))
				return append(append(head, area...), contents[start:]...)
			})
			_, err := ParseCommit(objectID(raw), []byte(raw))
			if test.good {
				assert.NoError(t, err)
			} else {
				assert.Equal(t, sources.NonCanonicalSignature, sources.ReasonOf(err), "%v", err)
			}
		})
	}
}

func fromHex(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(text)
	require.NoError(tb, err)
	return b
}

// The same for the format of ssh-keygen.
func TestAnSSHSignatureHasOneForm(t *testing.T) {
	payload := payloadAt(noon)
	alice, touch := privateKey(t, sshKey(t, "alice")), newSecurityKey(t)
	inner, err := alice.Sign(rand.Reader, sshMessage(payload))
	require.NoError(t, err)
	build := func(change func(*sshBlob, *ssh.Signature)) string {
		b := sshBlob{Magic: [6]byte([]byte("SSHSIG")), Version: 1, PublicKey: alice.PublicKey().Marshal(), Namespace: "git", Hash: "sha256"}
		copied := *inner
		change(&b, &copied)
		if b.Signature == nil {
			b.Signature = ssh.Marshal(copied)
		}
		return withSignature(payload, sshBegin+wrap(base64.StdEncoding.EncodeToString(ssh.Marshal(b)), 70)+sshEnd)
	}
	_, err = Policy{Now: noon}.Verify(parse(t, build(func(*sshBlob, *ssh.Signature) {})), signersOf(t, alice.PublicKey()))
	require.NoError(t, err)

	for name, raw := range map[string]string{
		"another magic":                 build(func(b *sshBlob, _ *ssh.Signature) { b.Magic[0] = 'X' }),
		"another version":               build(func(b *sshBlob, _ *ssh.Signature) { b.Version = 2 }),
		"something reserved":            build(func(b *sshBlob, _ *ssh.Signature) { b.Reserved = []byte("x") }),
		"something after it":            build(func(_ *sshBlob, s *ssh.Signature) { s.Rest = []byte("x") }),
		"no signature inside":           build(func(b *sshBlob, _ *ssh.Signature) { b.Signature = []byte("x") }),
		"ECDSA that is not two numbers": build(func(_ *sshBlob, s *ssh.Signature) { s.Format = ssh.KeyAlgoECDSA256 }),
		"ECDSA with leading zeros": build(func(_ *sshBlob, s *ssh.Signature) {
			s.Format, s.Blob = ssh.KeyAlgoECDSA256, ssh.Marshal(struct{ R, S []byte }{[]byte{0, 0, 1}, []byte{1}})
		}),
		"a security key without flags": withSignature(payload, sshSignature(touch.public, &ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: inner.Blob})),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseCommit(objectID(raw), []byte(raw))
			assert.Equal(t, sources.NonCanonicalSignature, sources.ReasonOf(err), "%v", err)
		})
	}
}

func signersOf(tb testing.TB, public ssh.PublicKey) Signers {
	tb.Helper()
	s, problems := parseKeyFiles("", []keyFile{{"alice.pub", string(ssh.MarshalAuthorizedKey(public))}})
	require.Empty(tb, problems)
	return s
}

// A number of an RSA signature is as long as the key, whether its leading zeros
// are written or not: else there were one more form of it.
func TestAnRSASignatureIsAsLongAsItsKey(t *testing.T) {
	entity, public := goPGPKey(t, &packet.Config{RSABits: 2048})
	s, _ := parseKeyFiles("", []keyFile{{"forge.asc", public}})
	p := Policy{Now: noon.Add(time.Minute)}
	pgp := likeGitHub(t, payloadAt(noon), entity)
	_, err := p.Verify(parse(t, pgp), s)
	require.NoError(t, err)
	longer := editContents(t, pgp, func(contents []byte) []byte {
		start := len(contents) - 256 - 2
		head := binary.BigEndian.AppendUint16(contents[:start:start], 8*257)
		return append(append(head, 0), contents[start+2:]...)
	})
	_, err = p.Verify(parse(t, longer), s)
	assert.Equal(t, sources.BadSignature, sources.ReasonOf(err), "%v", err)

	misstated := editContents(t, pgp, func(contents []byte) []byte {
		start := len(contents) - 256 - 2
		bits := 8*255 + bits.Len8(contents[start+2])
		stated := 2042 // neither the true count nor that of whole bytes
		if bits == stated {
			stated++
		}
		binary.BigEndian.PutUint16(contents[start:], uint16(stated))
		return contents
	})
	_, err = ParseCommit(objectID(misstated), []byte(misstated))
	assert.Equal(t, sources.NonCanonicalSignature, sources.ReasonOf(err), "%v", err)

	key := gittest.NewSSHKey(t, "alice", "rsa", "-b", "2048")
	signer := privateKey(t, key).(ssh.AlgorithmSigner)
	for i := range 5000 {
		payload := payloadAt(noon.Add(time.Duration(i) * time.Second))
		inner, err := signer.SignWithAlgorithm(rand.Reader, sshMessage(payload), ssh.KeyAlgoRSASHA256)
		require.NoError(t, err)
		if inner.Blob[0] != 0 {
			continue
		}
		p.Now = noon.AddDate(0, 0, 1)
		_, err = p.Verify(parse(t, withSignature(payload, sshSignature(signer.PublicKey(), inner))), signers(t, key))
		require.NoError(t, err)
		inner.Blob = inner.Blob[1:]
		_, err = p.Verify(parse(t, withSignature(payload, sshSignature(signer.PublicKey(), inner))), signers(t, key))
		assert.Equal(t, sources.BadSignature, sources.ReasonOf(err), "%v", err)
		return
	}
	t.Fatal("no signature began with a zero byte")
}

// The two bytes of the digest stand beside what is covered. gpg lets wrong ones
// pass; they would be a free choice.
func TestTheDigestBytesOfASignatureHaveToBeRight(t *testing.T) {
	pgp := fixture(t, "tools/gpg-2.4.commit")
	wrong := editContents(t, pgp, func(contents []byte) []byte {
		hashed := int(binary.BigEndian.Uint16(contents[4:]))
		unhashed := int(binary.BigEndian.Uint16(contents[6+hashed:]))
		contents[8+hashed+unhashed] ^= 1
		return contents
	})
	_, err := Policy{Now: noon.Add(time.Minute)}.Verify(parse(t, wrong), fixtureKey(t, "tools/gpg-2.4.asc"))
	assert.Equal(t, sources.BadSignature, sources.ReasonOf(err), "%v", err)
}

// The edits above are refused for what they change: the same way of taking a
// commit apart and joining it again gives the commit.
func TestAnEditThatChangesNothingGivesTheSameCommit(t *testing.T) {
	same := func(b []byte) []byte { return b }
	ssh, pgp := signed(t, plain, sshKey(t, "alice")), fixture(t, "tools/gpg-2.4.commit")
	assert.Equal(t, ssh, edit(t, ssh, func(s string) string { return rewrapSSH(s, 70) }))
	for _, got := range []string{editPacket(t, pgp, same), editContents(t, pgp, same), editUnhashed(t, pgp, same), editNumber(t, pgp, same)} {
		assert.Equal(t, pgp, got)
	}
	sq := fixture(t, "tools/sq-1.3-rfc4880.commit")
	assert.Equal(t, sq, editContents(t, sq, same))
}

// What some known tool writes stays open: each is a form in which the same
// signature may come. Pins find such twins by their payload.
func TestFormsThatToolsWriteAreCanonical(t *testing.T) {
	key := gittest.NewSSHKey(t, "alice", "ecdsa")
	ssh := signed(t, payloadAt(noon), key)
	pgp := fixture(t, "tools/gpg-2.4.commit")
	for name, raw := range map[string]string{
		"SSH at 64 characters":               edit(t, ssh, func(s string) string { return rewrapSSH(s, 64) }),
		"SSH with an empty line at the end":  edit(t, ssh, func(s string) string { return s + "\n" }),
		"PGP with an empty line at the end":  edit(t, pgp, func(s string) string { return s + "\n" }),
		"PGP without checksum":               edit(t, pgp, func(s string) string { return s[:strings.LastIndex(s, "\n=")] + pgpEnd }),
		"PGP with a packet header in new":    editPacket(t, pgp, func(b []byte) []byte { return append([]byte{0xc2, b[1]}, b[2:]...) }),
		"PGP without the issuer's second id": editUnhashed(t, pgp, func([]byte) []byte { return nil }),
		"ECDSA with the other root":          edit(t, ssh, otherRoot),
	} {
		t.Run(name, func(t *testing.T) {
			c := parse(t, raw)
			assert.NotContains(t, []string{objectID(ssh), objectID(pgp)}, c.ID)
			_, err := Policy{Now: noon.AddDate(1, 0, 0)}.Verify(c, joined(t, signers(t, key), fixtureKey(t, "tools/gpg-2.4.asc")))
			assert.NoError(t, err)
			assert.Contains(t, []string{parse(t, ssh).PayloadHash, parse(t, pgp).PayloadHash}, c.PayloadHash)
		})
	}
}

// fixture gives a file of testdata.
func fixture(tb testing.TB, name string) string {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
	require.NoError(tb, err)
	return string(data)
}

// fixtureKey reads one key of testdata.
func fixtureKey(tb testing.TB, name string) Signers {
	tb.Helper()
	s, _ := parseKeyFiles("testdata", []keyFile{{name: filepath.Base(name), text: fixture(tb, name)}})
	require.NotEmpty(tb, s.byID)
	return s
}

func joined(tb testing.TB, sets ...Signers) Signers {
	tb.Helper()
	all := Signers{byID: map[string]*key{}}
	for _, s := range sets {
		maps.Copy(all.byID, s.byID)
	}
	return all
}

// edit changes the text of a commit's signature.
func edit(tb testing.TB, raw string, change func(string) string) string {
	tb.Helper()
	payload, signature := cutSignature(tb, raw)
	return withSignature(payload, change(signature))
}

func folded(tb testing.TB, raw string) string {
	tb.Helper()
	_, signature := cutSignature(tb, raw)
	return strings.ReplaceAll(signature, "\n", "\n ")
}

// rejoin wraps an OpenPGP armor at 60 characters.
func rejoin(signature string) string {
	body, checksum, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(signature, pgpBegin+"\n"), pgpEnd), "\n=")
	return pgpBegin + "\n" + wrap(strings.ReplaceAll(body, "\n", ""), 60) + "\n=" + checksum + pgpEnd
}

func rewrapSSH(signature string, width int) string {
	body := strings.TrimSuffix(strings.TrimPrefix(signature, sshBegin), sshEnd)
	return sshBegin + wrap(strings.ReplaceAll(body, "\n", ""), width) + sshEnd
}

// looseBits sets a bit of the last base64 digit that no byte has.
func looseBits(signature string) string {
	at := strings.LastIndex(signature, "=\n")
	for at > 0 && signature[at-1] == '=' {
		at--
	}
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	last := strings.IndexByte(digits, signature[at-1])
	return signature[:at-1] + string(digits[last+1]) + signature[at:]
}

// editPacket changes the bytes in an OpenPGP armor.
func editPacket(tb testing.TB, raw string, change func([]byte) []byte) string {
	tb.Helper()
	return edit(tb, raw, func(signature string) string {
		body, err := unarmorPGP(signature)
		require.NoError(tb, err)
		var text bytes.Buffer
		w, err := armor.Encode(&text, "PGP SIGNATURE", nil)
		require.NoError(tb, err)
		_, err = w.Write(change(body))
		require.NoError(tb, err)
		require.NoError(tb, w.Close())
		return text.String()
	})
}

// editContents changes the contents of the signature packet.
func editContents(tb testing.TB, raw string, change func([]byte) []byte) string {
	tb.Helper()
	return editPacket(tb, raw, func(body []byte) []byte {
		contents, err := unpack(body)
		require.NoError(tb, err)
		contents = change(bytes.Clone(contents))
		if body[0] == 0x88 {
			return append(oldHeader(len(contents)), contents...)
		}
		var b bytes.Buffer
		require.NoError(tb, (&packet.OpaquePacket{Tag: tagSignature, Contents: contents}).Serialize(&b))
		return b.Bytes()
	})
}

// editUnhashed changes the subpackets that a version 4 signature doesn't cover.
func editUnhashed(tb testing.TB, raw string, change func([]byte) []byte) string {
	tb.Helper()
	return editContents(tb, raw, func(contents []byte) []byte {
		start := 6 + int(binary.BigEndian.Uint16(contents[4:]))
		length := int(binary.BigEndian.Uint16(contents[start:]))
		area := change(bytes.Clone(contents[start+2 : start+2+length]))
		rest := contents[start+2+length:]
		head := binary.BigEndian.AppendUint16(bytes.Clone(contents[:start]), uint16(len(area)))
		return append(append(head, area...), rest...)
	})
}

// editNumber changes the last number of a version 4 signature: two bytes that
// count its bits, and the number.
func editNumber(tb testing.TB, raw string, change func([]byte) []byte) string {
	tb.Helper()
	return editContents(tb, raw, func(contents []byte) []byte {
		sig, err := parseSignature(contents)
		require.NoError(tb, err)
		start := len(contents) - int(sig.EdDSASigS.EncodedLength())
		return append(contents[:start:start], change(bytes.Clone(contents[start:]))...)
	})
}

// leadingZero writes a number with one more byte.
func leadingZero(n []byte) []byte {
	bits := binary.BigEndian.Uint16(n)
	return append(append(binary.BigEndian.AppendUint16(nil, bits+8), 0), n[2:]...)
}

// longerNumber states a full number of bytes where the first bit is zero.
func longerNumber(n []byte) []byte {
	bits := binary.BigEndian.Uint16(n)
	binary.BigEndian.PutUint16(n, (bits+7)/8*8)
	if bits%8 == 0 {
		binary.BigEndian.PutUint16(n, bits-1)
	}
	return n
}

// otherRoot replaces s of an ECDSA signature by n - s, which verifies as well.
func otherRoot(signature string) string {
	blob, err := unarmorSSH(signature)
	if err != nil {
		return err.Error()
	}
	var b sshBlob
	var inner ssh.Signature
	var point struct{ R, S *big.Int }
	if ssh.Unmarshal(blob, &b) != nil || ssh.Unmarshal(b.Signature, &inner) != nil || ssh.Unmarshal(inner.Blob, &point) != nil {
		return "not an ECDSA signature"
	}
	order, _ := new(big.Int).SetString("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", 16)
	point.S.Sub(order, point.S)
	inner.Blob = ssh.Marshal(point)
	b.Signature = ssh.Marshal(inner)
	return fmt.Sprint(sshBegin, wrap(base64.StdEncoding.EncodeToString(ssh.Marshal(b)), 70), sshEnd)
}
