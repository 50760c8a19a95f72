package fleet

import (
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"github.com/fleetling/fleetling/sources"
)

const (
	clusterNameKey = "cluster.name"
	labelPrefix    = "labels."
)

// expand replaces each {{key}} in text by what value gives for the key. All up
// to }} is the key: spaces count.
func expand(text string, value func(key string) (string, *sources.Error)) (string, *sources.Error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{{")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		key, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return "", fault(sources.InvalidFleetFile, "the template {{%.80s has no }}", key)
		}
		replacement, problem := value(key)
		if problem != nil {
			return "", problem
		}
		out.WriteString(replacement)
		text = after
	}
}

// checkTemplate looks at what holds for every cluster: the keys, and, in a path,
// what stands around them.
func checkTemplate(text string, rules map[string]LabelRule, isPath bool) *sources.Error {
	sample, problem := expand(text, func(key string) (string, *sources.Error) {
		label, isLabel := strings.CutPrefix(key, labelPrefix)
		if _, declared := rules[label]; isLabel && !declared {
			return "", undeclared(label)
		}
		if !isLabel && key != clusterNameKey {
			return "", fault(sources.InvalidFleetFile, "the template {{%.80s}} is not known: {{labels.KEY}} and {{cluster.name}} are, without spaces", key)
		}
		return "x", nil
	})
	if problem == nil && isPath && !validFolder(sample) {
		return fault(sources.InvalidFleetFile,
			"path %s must be a folder below the root of the repository, such as addons/name: relative, without .. and a / at the end, no URL", shown(text))
	}
	return problem
}

// shown is a path for an error; a URL may hold a password.
func shown(text string) string {
	if strings.Contains(text, "://") {
		return "(a URL)"
	}
	return fmt.Sprintf("%.200q", text)
}

func validFolder(name string) bool {
	odd := func(r rune) bool { return r == '\\' || !unicode.IsPrint(r) }
	return fs.ValidPath(name) && name != "." && !strings.ContainsFunc(name, odd)
}

// isSegment tells whether value can stand between two slashes, and is only that.
func isSegment(value string) bool {
	return fs.ValidPath(value) && value != "." && !strings.Contains(value, "/")
}
