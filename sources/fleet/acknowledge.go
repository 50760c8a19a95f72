package fleet

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

func decodeAcknowledge(d decoder, at item) []Acknowledgement {
	var read []Acknowledgement
	seen := map[[2]string]bool{}
	d.list(at, maxItems, func(at item) {
		line := Acknowledgement{Line: at.line}
		var digest, reason Text
		d.object(at, fields{
			"addon":  {required: true, read: d.dnsLabel(&line.AddOn, validation.DNS1123LabelMaxLength)},
			"delete": {required: true, read: d.into(&digest)},
			"reason": {required: true, read: d.into(&reason)},
		})
		line.Delete, line.Reason = digest.Value, reason.Value
		if line.Delete != "" && !isDigest(line.Delete) {
			d.report(digest.Line, d.reason, "%.80q is not a digest: sha256: and 64 digits 0-9a-f", line.Delete)
		}
		if key := [2]string{line.AddOn, line.Delete}; seen[key] {
			d.report(at.line, d.reason, "this set of add-on %.80q is acknowledged twice", line.AddOn)
		} else {
			seen[key] = true
		}
		read = append(read, line)
	})
	return read
}

func isDigest(text string) bool {
	digits, ok := strings.CutPrefix(text, digestPrefix)
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}
