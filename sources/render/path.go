package render

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var errRemote = errors.New("a URL or a remote base: nothing is fetched while rendering; commit the files and name their path")

// local gives where a path leads that stands in a kustomization of folder dir,
// from the root of the repository. The text of what is refused as remote is not
// repeated: a URL may hold a password.
func local(dir, written string) (string, error) {
	switch {
	case written == "":
		return "", errors.New("an empty path")
	case !isText(written):
		return "", fmt.Errorf("the path %.60q holds bytes that are no text", written)
	case remote(written):
		return "", errRemote
	case path.IsAbs(written):
		return "", fmt.Errorf("the path %.60q is absolute: write it from this folder", written)
	case ambiguous(written):
		return "", fmt.Errorf("the path %.60q holds `..` inside a name: are two lines of a list one by their indentation?", written)
	}
	name := path.Join(dir, written)
	if outside(name) {
		return "", fmt.Errorf("the path %.60q leads out of the repository", written)
	}
	return name, nil
}

// isText says that a name can be shown to a person as it is.
func isText(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// outside says that a clean path leads above the root.
func outside(name string) bool { return name == ".." || strings.HasPrefix(name, "../") }

// below says that a clean path stands in or below folder dir.
func below(dir, name string) bool { return dir == "." || strings.HasPrefix(name, dir+"/") }

// remote says that kustomize could take a path for something to fetch. Wider
// than kustomize's own rule: no query, no double slash, no scheme whatever.
func remote(written string) bool {
	for _, mark := range []string{"://", "::", "//", "?"} {
		if strings.Contains(written, mark) {
			return true
		}
	}
	u, err := url.Parse(written)
	if err == nil && u.Scheme != "" {
		return true
	}
	// A name like icon@2x.png is no user at a host.
	return fetched(written) && strings.ContainsAny(written, "/:")
}

// fetched says that kustomize would fetch a text that it can't read as YAML.
func fetched(text string) bool {
	lower := strings.ToLower(text[:min(len(text), 20)])
	for _, prefix := range []string{"http:", "https:", "ssh:", "file:", "git::", "github.com/", "github.com:"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*@`).MatchString(text)
}

func ambiguous(written string) bool {
	for part := range strings.SplitSeq(written, "/") {
		if part != ".." && strings.Contains(part, "..") {
			return true
		}
	}
	return false
}
