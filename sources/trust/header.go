package trust

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxSeconds is the end of the year 9999.
const maxSeconds = 253402300799

// parseIdent reads "Name <address> seconds zone".
func parseIdent(text string) (time.Time, bool) {
	name, rest, ok := strings.Cut(text, "<")
	address, rest, ok2 := strings.Cut(rest, "> ")
	if !ok || !ok2 || (name != "" && !strings.HasSuffix(name, " ")) {
		return time.Time{}, false
	}
	if strings.ContainsAny(name+address, "<>") || strings.ContainsFunc(text, isControl) {
		return time.Time{}, false
	}
	return parseTime(rest)
}

// parseTime reads "seconds zone", each in the one way to write it.
func parseTime(text string) (time.Time, bool) {
	seconds, zone, _ := strings.Cut(text, " ")
	unix, err := strconv.ParseUint(seconds, 10, 63)
	if err != nil || unix > maxSeconds || seconds != strconv.FormatUint(unix, 10) {
		return time.Time{}, false
	}
	if len(zone) != 5 || !strings.ContainsAny(zone[:1], "+-") || strings.Trim(zone[1:], "0123456789") != "" {
		return time.Time{}, false
	}
	return time.Unix(int64(unix), 0).UTC(), true
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// header is one header of a commit with its continuation lines.
type header struct {
	name string
	// raw is the header as stored, with its last line feed.
	raw []byte
}

// value is the header's text with the folding undone.
func (h header) value() string {
	return strings.ReplaceAll(string(h.raw[len(h.name)+1:len(h.raw)-1]), "\n ", "\n")
}

func (h header) isSignature() bool { return h.name == "gpgsig" || h.name == "gpgsig-sha256" }

// splitHeaders cuts the part of raw above the first empty line.
func splitHeaders(raw []byte) ([]header, error) {
	var headers []header
	for start := 0; ; {
		length := bytes.IndexByte(raw[start:], '\n')
		if length < 0 {
			return nil, errors.New("no empty line ends its headers")
		}
		if length == 0 {
			return headers, nil
		}
		end := start + length + 1
		for end < len(raw) && raw[end] == ' ' {
			more := bytes.IndexByte(raw[end:], '\n')
			if more < 0 {
				return nil, errors.New("no empty line ends its headers")
			}
			end += more + 1
		}
		name, _, ok := bytes.Cut(raw[start:start+length], []byte(" "))
		if !ok || len(name) == 0 || len(bytes.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-")) > 0 {
			return nil, fmt.Errorf("line %d of its headers has no name", bytes.Count(raw[:start], []byte("\n"))+1)
		}
		headers = append(headers, header{name: string(name), raw: raw[start:end]})
		start = end
	}
}

// withoutSignatures gives raw without the headers that carry a signature,
// however many there are: the same bytes for every re-wrapping of a commit.
func withoutSignatures(raw []byte, headers []header) []byte {
	if !slices.ContainsFunc(headers, header.isSignature) {
		return raw
	}
	payload := make([]byte, 0, len(raw))
	size := 0
	for _, h := range headers {
		size += len(h.raw)
		if !h.isSignature() {
			payload = append(payload, h.raw...)
		}
	}
	return append(payload, raw[size:]...)
}
