package fleet

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetling/fleetling/sources"
)

const (
	maxAddOns      = 500
	maxComponents  = 64
	maxSubstitutes = 64
	defaultTimeout = 5 * time.Minute
	maxTimeout     = 24 * time.Hour
)

func decodeAddOns(d decoder, at item) []AddOnRule {
	var read []AddOnRule
	d.list(at, maxAddOns, func(at item) {
		read = append(read, decodeAddOn(d, at))
	})
	if at.empty() {
		d.report(at.line, d.reason, "there must be an add-on: an empty list would remove everything from every cluster")
	}
	return read
}

func decodeAddOn(d decoder, at item) AddOnRule {
	// What is wrong with a key above the name is the add-on's too.
	d.addOn = nameOf(at)
	rule := AddOnRule{Line: at.line, Timeout: defaultTimeout}
	d.object(at, fields{
		"name":       {required: true, read: d.dnsLabel(&rule.Name, validation.DNS1123LabelMaxLength)},
		"path":       {required: true, read: d.into(&rule.Path)},
		"when":       {read: func(at item) { rule.requires = decodeWhen(d, at) }},
		"components": {read: func(at item) { rule.Components = decodeComponents(d, at) }},
		"dependsOn":  {read: func(at item) { rule.DependsOn = d.texts(at, maxAddOns, d.reason) }},
		"substitute": {read: func(at item) { rule.Substitute = decodeSubstitute(d, at) }},
		"timeout":    {read: func(at item) { rule.Timeout = decodeTimeout(d, at) }},
	})
	return rule
}

// nameOf looks ahead; it is "" where the name is no name.
func nameOf(at item) string {
	var name string
	aside := decoder{problems: &problems{}, lenient: true}
	aside.object(at, fields{"name": {read: aside.dnsLabel(&name, validation.DNS1123LabelMaxLength)}})
	return name
}

func decodeComponents(d decoder, at item) []ComponentRule {
	var read []ComponentRule
	d.list(at, maxComponents, func(at item) {
		var rule ComponentRule
		d.object(at, fields{
			"path":     {required: true, read: d.into(&rule.Path)},
			"when":     {read: func(at item) { rule.requires = decodeWhen(d, at) }},
			"optional": {read: d.truth(&rule.Optional)},
		})
		read = append(read, rule)
	})
	return read
}

func decodeSubstitute(d decoder, at item) map[string]Text {
	read := map[string]Text{}
	d.each(at, func(name string, value item) {
		text, ok := d.text(value, d.reason)
		switch {
		case !ok:
		case !isVariable(name):
			d.report(value.line, d.reason, "%.80q is not a variable: letters, digits and _, not beginning with a digit", name)
		default:
			read[name] = text
		}
	})
	if len(read) > maxSubstitutes {
		d.report(at.line, sources.LimitExceeded, "substitute has %d variables: at most %d are read", len(read), maxSubstitutes)
	}
	return read
}

func isVariable(name string) bool {
	for at, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (at == 0 || c < '0' || '9' < c) {
			return false
		}
	}
	return name != ""
}

func decodeTimeout(d decoder, at item) time.Duration {
	text, ok := d.text(at, d.reason)
	if !ok {
		return 0
	}
	timeout, err := time.ParseDuration(text.Value)
	if err != nil || timeout <= 0 || timeout > maxTimeout {
		d.report(at.line, d.reason, "timeout must be a duration up to %s, such as 90s or 5m, not %.80q", maxTimeout, text.Value)
	}
	return timeout
}
