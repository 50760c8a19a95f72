package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fleetling/fleetling/sources"
)

// maxNear is how many folders that are there a PathNotFound names.
const maxNear = 5

// resolver makes add-ons for one cluster out of rules for all.
type resolver struct {
	fsys     fs.FS
	member   member
	problems *problems
}

func (r resolver) addOn(rule AddOnRule, chosen map[string]bool) AddOn {
	at := place{file: fleetFile, addOn: rule.Name}
	addOn := AddOn{Name: rule.Name, Timeout: rule.Timeout, File: fleetFile, Line: rule.Line}
	addOn.Path, _ = r.folder(at, rule.Path, false)
	for _, component := range rule.Components {
		if !r.member.matches(component.When) {
			continue
		}
		folder, there := r.folder(at, component.Path, component.Optional)
		if there {
			addOn.Components = append(addOn.Components, folder)
		} else {
			addOn.Absent = append(addOn.Absent, folder)
		}
	}
	for _, dependency := range rule.DependsOn {
		if chosen[dependency.Value] {
			addOn.DependsOn = append(addOn.DependsOn, dependency.Value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rule.Substitute)) {
		if addOn.Substitute == nil {
			addOn.Substitute = make(map[string]string, len(rule.Substitute))
		}
		addOn.Substitute[name], _ = r.text(at, rule.Substitute[name])
	}
	return addOn
}

// text resolves templates.
func (r resolver) text(at place, text Text) (string, bool) {
	resolved, problem := expand(text.Value, r.value)
	if problem != nil {
		r.problems.add(at.on(text.Line), problem)
	}
	return resolved, problem == nil
}

func (r resolver) value(key string) (string, *sources.Error) {
	if key == clusterNameKey {
		return r.member.name, nil
	}
	label := strings.TrimPrefix(key, labelPrefix)
	value, ok := r.member.labels[label]
	switch {
	case !ok:
		return "", fault(sources.MissingLabel, "the template {{%s}} needs label %q, which %s lacks: add it there, or select with operator Exists",
			key, label, r.member.home)
	case !isSegment(value):
		return "", fault(sources.InvalidLabelValue, "the template {{%s}} needs a value that is one plain path segment, and %s says %.80q",
			key, r.member.home, value)
	}
	return value, nil
}

// folder resolves a path and looks whether it is there. An optional one may be
// absent; one that can't be read, or is no folder, is a problem all the same.
func (r resolver) folder(at place, text Text, optional bool) (string, bool) {
	at = at.on(text.Line)
	name, ok := r.text(at, text)
	if !ok {
		return "", false
	}
	info, err := fs.Stat(r.fsys, name)
	switch {
	case err == nil && info.IsDir():
		return name, true
	case err == nil:
		r.problems.add(at, fault(sources.PathNotFound, "%s is a file, and must be a folder", from(name, text)))
	case !errors.Is(err, fs.ErrNotExist):
		r.problems.add(at, unreadable(sources.PathNotFound, fmt.Errorf("%s: %w", from(name, text), err)))
	case !optional:
		r.problems.add(at, fault(sources.PathNotFound, "%s is not in the tree%s", from(name, text), near(r.fsys, name)))
	}
	return name, false
}

func from(name string, text Text) string {
	if name == text.Value {
		return fmt.Sprintf("%.200q", name)
	}
	return fmt.Sprintf("%.200q (from %.200q)", name, text.Value)
}

// near names some folders beside the deepest part of name that is there. It is
// a hint: what can't be read is left out.
func near(fsys fs.FS, name string) string {
	parent := path.Dir(name)
	for parent != "." {
		if _, err := fs.Stat(fsys, parent); err == nil {
			break
		}
		parent = path.Dir(parent)
	}
	entries, err := fs.ReadDir(fsys, parent)
	if err != nil {
		return ""
	}
	var folders []string
	for _, entry := range entries {
		if entry.IsDir() && len(folders) < maxNear {
			folders = append(folders, fmt.Sprintf("%.80q", entry.Name()))
		}
	}
	if len(folders) == 0 {
		return ""
	}
	if parent == "." {
		parent = "the root"
	}
	return fmt.Sprintf("; %s has %s", parent, strings.Join(folders, ", "))
}
