package trust

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
)

// unarmorPGP undoes the armor: no armor headers, lines of 64 characters, with a
// checksum or (Sequoia, for version 6) without, and an empty last line where
// GitHub writes one.
func unarmorPGP(text string) ([]byte, error) {
	text = strings.TrimSuffix(text, "\n")
	inner, ok := strings.CutPrefix(text, pgpBegin+"\n")
	inner, ok2 := strings.CutSuffix(inner, pgpEnd)
	if !ok || !ok2 {
		return nil, errors.New("has armor headers, or something before BEGIN or after END")
	}
	encoded, _, checksum := strings.Cut(inner, "\n=")
	body, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return nil, errors.New("is not base64 inside")
	}
	var again bytes.Buffer
	w, err := armor.EncodeWithChecksumOption(&again, openpgp.SignatureType, nil, checksum)
	if err == nil {
		_, err = w.Write(body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil || again.String() != text {
		return nil, errors.New("is not wrapped at 64 characters, or has a wrong checksum")
	}
	return body, nil
}

// unpack gives the contents of the one signature packet that body has to be,
// under the shortest header of the old format (gpg) or the new one.
func unpack(body []byte) ([]byte, error) {
	p, err := packet.NewOpaqueReader(bytes.NewReader(body)).Next()
	if err != nil || p.Tag != tagSignature {
		return nil, errors.New("is not an OpenPGP signature inside")
	}
	var canonical bytes.Buffer
	if err := p.Serialize(&canonical); err != nil {
		return nil, errors.New("is not an OpenPGP signature inside")
	}
	if !bytes.Equal(body, canonical.Bytes()) && !bytes.Equal(body, append(oldHeader(len(p.Contents)), p.Contents...)) {
		return nil, errors.New("is not exactly one OpenPGP signature packet")
	}
	return p.Contents, nil
}

// oldHeader is the header of a signature packet in the old format: RFC 9580,
// section 4.2.2.
func oldHeader(length int) []byte {
	const old = 0x80 | tagSignature<<2
	switch {
	case length < 1<<8:
		return []byte{old, byte(length)}
	case length < 1<<16:
		return binary.BigEndian.AppendUint16([]byte{old | 1}, uint16(length))
	default:
		return binary.BigEndian.AppendUint32([]byte{old | 2}, uint32(length))
	}
}

// parseSignature reads the packet with the library that will verify it, and
// makes sure that there is no second way to write it.
func parseSignature(contents []byte) (*packet.Signature, error) {
	p, err := (&packet.OpaquePacket{Tag: tagSignature, Contents: contents}).Parse()
	sig, ok := p.(*packet.Signature)
	if err != nil || !ok {
		return nil, fmt.Errorf("can't be read: %w", err)
	}
	var given, again bytes.Buffer
	err = errors.Join((&packet.OpaquePacket{Tag: tagSignature, Contents: contents}).Serialize(&given), sig.Serialize(&again))
	if err != nil || !bytes.Equal(given.Bytes(), again.Bytes()) {
		return nil, errors.New("is not encoded in the shortest form")
	}
	for _, n := range []number{sig.ECDSASigR, sig.ECDSASigS, sig.EdDSASigR, sig.EdDSASigS} {
		if n != nil && !isShortest(n) {
			return nil, errors.New("is not encoded in the shortest form")
		}
	}
	if n := sig.RSASignature; n != nil && !isShortest(n) && !isWhole(n) {
		return nil, errors.New("is not encoded in the shortest form")
	}
	return sig, nil
}

// number is an OpenPGP multi-precision integer.
type number interface {
	Bytes() []byte
	BitLength() uint16
}

func isShortest(n number) bool {
	b := n.Bytes()
	return len(b) > 0 && b[0] != 0 && int(n.BitLength()) == 8*(len(b)-1)+bits.Len8(b[0])
}

// isWhole says whether n is written with its leading zeros, as Go's first
// OpenPGP library does, and with it GitHub. It has to be as long as the key.
func isWhole(n number) bool { return int(n.BitLength()) == 8*len(n.Bytes()) }

func hexUpper(b []byte) string { return strings.ToUpper(hex.EncodeToString(b)) }

// isFingerprint says whether text is the fingerprint of an OpenPGP key, version
// 4 or 6.
func isFingerprint(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789ABCDEF") == ""
}

// keyID gives the 64-bit id that goes with an OpenPGP fingerprint. An id is its
// own.
func keyID(fingerprint string) string {
	if len(fingerprint) == 64 {
		return fingerprint[:16]
	}
	return fingerprint[max(0, len(fingerprint)-16):]
}
