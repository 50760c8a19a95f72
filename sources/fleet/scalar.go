package fleet

import (
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetling/fleetling/sources"
)

// text reads a string. What a reader of YAML 1.1 takes for something else is
// refused too: kubectl and Cluster API are such readers, and what is "no" here
// would be false there.
func (d decoder) text(at item, reason sources.Reason) (Text, bool) {
	d.reason = reason
	if !d.is(at, yaml.ScalarNode, "a string") {
		return Text{}, false
	}
	if at.node.ShortTag() != "!!str" || at.node.Style == 0 && boolean(at.node.Value) {
		d.report(at.line, reason, "%.80s is not a string for every YAML reader: quote it, %.80[2]q", at.name, at.node.Value)
		return Text{}, false
	}
	return Text{Value: at.node.Value, Line: at.line}, true
}

// boolean tells whether YAML 1.1 reads a plain word as true or false, and YAML
// 1.2 doesn't.
func boolean(word string) bool {
	switch strings.ToLower(word) {
	case "y", "yes", "on", "n", "no", "off":
		return true
	}
	return false
}

// into reads a string that must not be empty; target is left alone where there
// is none.
func (d decoder) into(target *Text) func(item) {
	return func(at item) {
		text, ok := d.text(at, d.reason)
		switch {
		case !ok:
		case text.Value == "":
			d.report(at.line, d.reason, "%.80s is empty", at.name)
		default:
			*target = text
		}
	}
}

// dnsLabel reads one DNS label (RFC 1123) of at most most characters.
func (d decoder) dnsLabel(target *string, most int) func(item) {
	return func(at item) {
		text, ok := d.text(at, d.reason)
		if !ok {
			return
		}
		if len(text.Value) > most || !isDNSLabel(text.Value) {
			d.report(at.line, d.reason, "%.80s must be one DNS label of at most %d characters (a-z, 0-9 and - inside), not %.80q", at.name, most, text.Value)
			return
		}
		*target = text.Value
	}
}

func isDNSLabel(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// truth reads true or false.
func (d decoder) truth(target *bool) func(item) {
	return func(at item) {
		if !d.is(at, yaml.ScalarNode, "true or false") {
			return
		}
		if word := at.node.Value; at.node.ShortTag() != "!!bool" || word != "true" && word != "false" {
			d.report(at.line, d.reason, "%.80s must be true or false, not %.80q", at.name, word)
			return
		}
		*target = at.node.Value == "true"
	}
}

// texts reads a list of different strings.
func (d decoder) texts(list item, most int, reason sources.Reason) []Text {
	var read []Text
	seen := map[string]bool{}
	d.list(list, most, func(at item) {
		text, ok := d.text(at, reason)
		if ok && seen[text.Value] {
			d.report(at.line, d.reason, "%.80q stands twice in %.80s", text.Value, list.name)
			return
		}
		if ok {
			seen[text.Value] = true
			read = append(read, text)
		}
	})
	return read
}

func values(texts []Text) []string {
	var plain []string
	for _, text := range texts {
		plain = append(plain, text.Value)
	}
	return plain
}
