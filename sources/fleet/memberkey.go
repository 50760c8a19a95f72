package fleet

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
)

const (
	memberKeyType = "ssh-ed25519"
	maxMemberKeys = 2
)

// decodeMemberKeys gives no key at all when a line is wrong.
func decodeMemberKeys(d decoder, at item) []string {
	text, ok := d.text(at, d.reason)
	if !ok {
		return nil
	}
	var keys []string
	for line := range strings.Lines(text.Value) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 2 || words[0] != memberKeyType || !isEd25519(words[1]) {
			d.report(at.line, d.reason, "%s: line %d is not an %s key, %[3]s AAAA...", memberKeysAnnotation, len(keys)+1, memberKeyType)
			return nil
		}
		keys = append(keys, words[0]+" "+words[1])
	}
	if len(keys) == 0 || len(keys) > maxMemberKeys || len(keys) == 2 && keys[0] == keys[1] {
		d.report(at.line, d.reason, "%s must hold one key, or two different ones, one a line", memberKeysAnnotation)
		return nil
	}
	return keys
}

// isEd25519 tells whether blob is the wire form of RFC 8709, section 4: the
// key's type and its 32 bytes, each with its length before it.
func isEd25519(blob string) bool {
	raw, err := base64.StdEncoding.DecodeString(blob)
	if err != nil {
		return false
	}
	head := slices.Concat(binary.BigEndian.AppendUint32(nil, uint32(len(memberKeyType))), []byte(memberKeyType), []byte{0, 0, 0, 32})
	return len(raw) == len(head)+32 && slices.Equal(raw[:len(head)], head)
}
