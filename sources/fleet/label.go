package fleet

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetling/fleetling/sources"
)

func decodeLabelRules(d decoder, at item, rules map[string]LabelRule) {
	d.each(at, func(key string, value item) {
		rule := LabelRule{Line: value.line}
		var allowed []Text
		d.object(value, fields{
			"required": {read: d.truth(&rule.Required)},
			"values":   {read: func(at item) { allowed = decodeValues(d, at) }},
		})
		rule.Values = values(allowed)
		switch {
		case len(validation.IsQualifiedName(key)) > 0:
			d.report(value.line, d.reason, "%.80q is not a label key", key)
		case len(rules) == maxLabels:
			d.report(value.line, sources.LimitExceeded, "label %.80q is one too many: at most %d can be declared", key, maxLabels)
		default:
			rules[key] = rule
		}
	})
}

func decodeValues(d decoder, at item) []Text {
	read := d.texts(at, maxItems, sources.InvalidLabelValue)
	if at.empty() {
		d.report(at.line, d.reason, "values is empty: name the values, or take the key away and allow any")
	}
	for _, value := range read {
		if len(validation.IsValidLabelValue(value.Value)) > 0 {
			d.report(value.Line, sources.InvalidLabelValue, "%.80q is not a label value", value.Value)
		}
	}
	return read
}

// checkLabels looks at the declared labels that one cluster has. whose names
// their holder, at gives where a label is written, or should be.
func checkLabels(rules map[string]LabelRule, has map[string]string, whose string, at func(key string) place, found *problems) {
	for _, key := range slices.Sorted(maps.Keys(rules)) {
		rule := rules[key]
		value, ok := has[key]
		switch {
		case !ok && rule.Required:
			found.add(at(key), fault(sources.MissingLabel, "%s lacks label %q, which is required (%s:%d)", whose, key, fleetFile, rule.Line))
		case !ok:
		case rule.Values != nil && !slices.Contains(rule.Values, value):
			found.add(at(key), fault(sources.InvalidLabelValue, "label %q of %s is %.80q: its values (%s:%d) are %.200s",
				key, whose, value, fleetFile, rule.Line, strings.Join(rule.Values, ", ")))
		case rule.Required && value == "":
			found.add(at(key), fault(sources.InvalidLabelValue, "label %q of %s is empty, and it is required (%s:%d)", key, whose, fleetFile, rule.Line))
		case len(validation.IsValidLabelValue(value)) > 0:
			found.add(at(key), fault(sources.InvalidLabelValue, "label %q of %s: %.80q is not a label value", key, whose, value))
		}
	}
}
