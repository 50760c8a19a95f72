package render

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// quote makes a message of kustomize fit to be shown and compared: paths from
// the root of the repository, one line, no addresses, no content of files.
func (s *scan) quote(err error) error {
	text := strings.NewReplacer(".."+repository+"/", "", repository+"/", "").Replace(err.Error())
	text = regexp.MustCompile("(?s) with config: `.*`").ReplaceAllString(text, "")
	text = regexp.MustCompile(`&\{[^}]*\}`).ReplaceAllString(text, "")
	if i := strings.LastIndex(text, nested); i >= 0 {
		text = text[i+len(nested):]
	}
	for _, mark := range []string{"\n", `\n`, "[{", ": {", "[patch:", "decoding "} {
		text, _, _ = strings.Cut(text, mark)
	}
	for _, secret := range s.secrets {
		if strings.Contains(text, secret) {
			return errors.New("kustomize can't build it, and its message holds the value of a Secret: `kustomize build` shows it")
		}
	}
	return fmt.Errorf("kustomize: %.400s", strings.TrimRight(text, ": "))
}

// nested stands before what went wrong in the folder that it went wrong in.
const nested = "recursed accumulation of path "
