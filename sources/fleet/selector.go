package fleet

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetling/fleetling/sources"
)

const maxRequirements = 64

// requirement is one line of a selector. All of them must hold.
type requirement struct {
	key      Text
	operator selection.Operator
	values   []Text
}

// decodeWhen reads a metav1.LabelSelector. An empty one is refused: elsewhere
// it means everything, or nothing.
func decodeWhen(d decoder, at item) []requirement {
	var read []requirement
	before := len(d.problems.kept)
	if !at.null() {
		d.object(at, fields{
			"matchLabels":      {read: func(at item) { read = append(read, decodeMatchLabels(d, at)...) }},
			"matchExpressions": {read: func(at item) { read = append(read, decodeExpressions(d, at)...) }},
		})
	}
	if len(read) == 0 && len(d.problems.kept) == before {
		d.report(at.line, sources.EmptySelector, "the selector is empty: take `when` away to select every cluster")
	}
	if len(read) > maxRequirements {
		d.report(at.line, sources.LimitExceeded, "%d requirements: at most %d are read", len(read), maxRequirements)
	}
	return read
}

func decodeMatchLabels(d decoder, at item) []requirement {
	var read []requirement
	if at.null() {
		return nil
	}
	d.each(at, func(key string, value item) {
		if text, ok := d.text(value, sources.InvalidLabelValue); ok {
			read = append(read, requirement{key: Text{key, value.line}, operator: selection.In, values: []Text{text}})
		}
	})
	return read
}

func decodeExpressions(d decoder, at item) []requirement {
	var read []requirement
	if at.null() {
		return nil
	}
	d.list(at, maxRequirements, func(at item) {
		var r requirement
		var operator Text
		given := 0
		d.object(at, fields{
			"key":      {required: true, read: d.into(&r.key)},
			"operator": {required: true, read: d.into(&operator)},
			"values": {read: func(at item) {
				given = len(at.node.Content)
				r.values = d.texts(at, maxItems, sources.InvalidLabelValue)
			}},
		})
		if operator.Value != "" && given == len(r.values) {
			r.operator = decodeOperator(d, operator, given > 0)
		}
		read = append(read, r)
	})
	return read
}

// decodeOperator gives "" where it has reported something.
func decodeOperator(d decoder, text Text, hasValues bool) selection.Operator {
	operator, wantsValues := selection.Operator(""), false
	switch metav1.LabelSelectorOperator(text.Value) {
	case metav1.LabelSelectorOpIn:
		operator, wantsValues = selection.In, true
	case metav1.LabelSelectorOpNotIn:
		operator, wantsValues = selection.NotIn, true
	case metav1.LabelSelectorOpExists:
		operator = selection.Exists
	case metav1.LabelSelectorOpDoesNotExist:
		operator = selection.DoesNotExist
	default:
		d.report(text.Line, d.reason, "operator %.80q must be In, NotIn, Exists or DoesNotExist", text.Value)
		return ""
	}
	switch {
	case wantsValues && !hasValues:
		d.report(text.Line, d.reason, "operator %s needs values", text.Value)
	case !wantsValues && hasValues:
		d.report(text.Line, d.reason, "operator %s takes no values", text.Value)
	default:
		return operator
	}
	return ""
}

// compile checks requirements against the declared labels. None is nil: every
// cluster.
func compile(d decoder, rules map[string]LabelRule, requires []requirement) labels.Selector {
	if len(requires) == 0 {
		return nil
	}
	selector := labels.NewSelector()
	for _, r := range requires {
		if r.key.Value == "" || r.operator == "" {
			continue // reported
		}
		if !allowed(d, rules, r) {
			continue
		}
		compiled, err := labels.NewRequirement(r.key.Value, r.operator, values(r.values))
		if err != nil {
			d.report(r.key.Line, d.reason, "%w", err)
			continue
		}
		selector = selector.Add(*compiled)
	}
	return selector
}

// allowed tells whether the declared labels let a selector say that.
func allowed(d decoder, rules map[string]LabelRule, r requirement) bool {
	before := len(d.problems.kept)
	rule, ok := rules[r.key.Value]
	if !ok {
		d.problems.add(d.on(r.key.Line), undeclared(r.key.Value))
	}
	if ok && !rule.Required && (r.operator == selection.NotIn || r.operator == selection.DoesNotExist) {
		d.report(r.key.Line, d.reason,
			"NotIn and DoesNotExist also select clusters that lack label %q by mistake: make it `required` (line %d), or select by what they have", r.key.Value, rule.Line)
	}
	for _, value := range r.values {
		switch {
		case !ok:
		case rule.Values != nil && !slices.Contains(rule.Values, value.Value):
			d.report(value.Line, sources.InvalidLabelValue, "label %q can't be %.80q: its values (line %d) are %.200s",
				r.key.Value, value.Value, rule.Line, strings.Join(rule.Values, ", "))
		case len(validation.IsValidLabelValue(value.Value)) > 0:
			d.report(value.Line, sources.InvalidLabelValue, "label %q: %.80q is not a label value", r.key.Value, value.Value)
		}
	}
	return len(d.problems.kept) == before
}

func undeclared(key string) *sources.Error {
	return fault(sources.UnknownLabel, "label %.80q is not declared: add it to `labels` in %s, or mend the spelling", key, fleetFile)
}
