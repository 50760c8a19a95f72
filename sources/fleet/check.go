package fleet

import (
	"maps"
	"slices"
	"strings"

	"github.com/fleetling/fleetling/sources"
)

// check looks at what one key of fleetling.yaml says of another: the labels that
// selectors and templates use, the add-ons that others depend on.
func check(d decoder, f *Fleet) {
	byName := map[string]*AddOnRule{}
	for i := range f.AddOns {
		rule := &f.AddOns[i]
		d.addOn = rule.Name
		checkAddOn(d, f.Labels, rule)
		first, twice := byName[rule.Name]
		switch {
		case rule.Name == "": // reported
		case twice:
			d.report(rule.Line, d.reason, "two add-ons have this name, the first in line %d: rename one", first.Line)
		default:
			byName[rule.Name] = rule
		}
	}
	for _, rule := range f.AddOns {
		d.addOn = rule.Name
		for _, dependency := range rule.DependsOn {
			if byName[dependency.Value] == nil {
				d.report(dependency.Line, d.reason, "dependsOn: no add-on has the name %.80q", dependency.Value)
			}
		}
	}
	checkCycles(d, f.AddOns, byName)
	d.addOn = ""
	for i := range f.Exports {
		f.Exports[i].When = compile(d, f.Labels, f.Exports[i].requires)
	}
}

func checkAddOn(d decoder, rules map[string]LabelRule, rule *AddOnRule) {
	template := func(text Text, isPath bool) {
		if text.Value == "" && isPath {
			return // reported
		}
		if problem := checkTemplate(text.Value, rules, isPath); problem != nil {
			d.problems.add(d.on(text.Line), problem)
		}
	}
	template(rule.Path, true)
	rule.When = compile(d, rules, rule.requires)
	for i := range rule.Components {
		component := &rule.Components[i]
		template(component.Path, true)
		component.When = compile(d, rules, component.requires)
	}
	for _, name := range slices.Sorted(maps.Keys(rule.Substitute)) {
		template(rule.Substitute[name], false)
	}
}

// checkCycles walks dependsOn depth first, in file order.
func checkCycles(d decoder, rules []AddOnRule, byName map[string]*AddOnRule) {
	var trail []string
	done := map[string]bool{}
	var walk func(rule *AddOnRule)
	walk = func(rule *AddOnRule) {
		trail = append(trail, rule.Name)
		for _, dependency := range rule.DependsOn {
			next := byName[dependency.Value]
			if start := slices.Index(trail, dependency.Value); start >= 0 {
				d.addOn = rule.Name
				d.report(dependency.Line, sources.DependencyCycle, "dependsOn goes round: %s: take one of them away",
					strings.Join(append(slices.Clone(trail[start:]), dependency.Value), " -> "))
			} else if next != nil && !done[dependency.Value] {
				walk(next)
			}
		}
		trail = trail[:len(trail)-1]
		done[rule.Name] = true
	}
	for _, rule := range rules {
		if known := byName[rule.Name]; known != nil && !done[rule.Name] {
			walk(known)
		}
	}
}
