package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
)

// kustomization is one kustomization file that was read and found harmless.
type kustomization struct {
	place
	dir  string
	spec types.Kustomization
	node *yaml.Node
	// offset is what the parser's lines are counted from, lines the first line
	// of each text, key or value.
	offset int
	lines  map[string]int
	// plain says that it, and all below it, only lists resources.
	plain bool
	// items are the objects of the files that it lists, bases the folders.
	items []item
	bases []*kustomization
	// visits and objects count what kustomize would read for it, with
	// repetition: a folder that is listed twice is read twice.
	visits, objects int
}

// decode reads a kustomization file more strictly than kustomize does, which
// keeps the last of two equal keys and takes `Resources` for `resources`.
func (s *scan) decode(name, dir string, data []byte) *kustomization {
	k := &kustomization{place: place{file: name}, dir: dir, visits: 1}
	docs, good := s.problems.documents(name, data)
	switch {
	case !good:
		return nil
	case len(docs) == 0:
		s.problems.add(k.place, "an empty kustomization")
		return nil
	case len(docs) > 1:
		s.problems.add(place{name, docs[1].line + docs[1].node.Line}, "a second document, which kustomize would not read")
		return nil
	}
	k.node, k.offset, k.lines = docs[0].node, docs[0].line, map[string]int{}
	k.index(k.node)
	if unknown := s.unknown(k, k.node, reflect.TypeFor[types.Kustomization]()); unknown {
		return nil
	}
	if err := k.spec.Unmarshal(data); err != nil {
		s.problems.add(k.at(mistyped(err)), "%w", withoutValue(err))
		return nil
	}
	k.spec.FixKustomization()
	if err := k.spec.CheckEmpty(); err != nil {
		s.problems.add(k.place, "%w: it lists nothing", err)
		return nil
	}
	if wrong := k.spec.EnforceFields(); len(wrong) > 0 {
		s.problems.add(k.at("kind"), "%s", strings.Join(wrong, "; "))
		return nil
	}
	k.plain = k.spec.Kind != types.ComponentKind && onlyResources(k.node)
	return k
}

// oldPatches gives the patches of the two fields that kustomize deprecates.
func (k *kustomization) oldPatches() ([]types.Patch, []types.PatchStrategicMerge) {
	//lint:ignore SA1019 users still write them, and kustomize still applies them
	return k.spec.PatchesJson6902, k.spec.PatchesStrategicMerge //nolint:staticcheck // users still write them, and kustomize still applies them
}

// onlyResources says that a kustomization has no other field.
func onlyResources(n *yaml.Node) bool {
	for i := 0; i < len(n.Content)-1; i += 2 {
		switch n.Content[i].Value {
		case "apiVersion", "kind", "resources":
		default:
			return false
		}
	}
	return true
}

// unknown refuses every key below n that has no field in type t.
func (s *scan) unknown(k *kustomization, n *yaml.Node, t reflect.Type) (found bool) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		for _, child := range n.Content {
			found = s.unknown(k, child, t.Elem()) || found
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct:
		found = s.unknownKey(k, n, t)
	}
	return found
}

func (s *scan) unknownKey(k *kustomization, n *yaml.Node, t reflect.Type) (found bool) {
	fields := fieldsOf(t)
	for i := 0; i < len(n.Content)-1; i += 2 {
		key := n.Content[i]
		if of, known := fields[key.Value]; known {
			found = s.unknown(k, n.Content[i+1], of) || found
		} else if key.ShortTag() != "!!merge" {
			s.problems.add(place{k.file, k.offset + key.Line}, "a kustomization has no field %.60q here", key.Value)
			found = true
		}
	}
	return found
}

// fieldsOf gives the fields of a struct by the names that JSON knows.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && !f.Anonymous {
			if name == "" {
				name = f.Name
			}
			fields[name] = f.Type
		}
	}
	return fields
}

// at is where a key, or a value, of this kustomization stands first.
func (k *kustomization) at(text string) place { return place{k.file, k.lines[text]} }

func (k *kustomization) index(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		k.note(n.Value, k.offset+n.Line)
	}
	for _, child := range n.Content {
		k.index(child)
	}
}

func (k *kustomization) note(text string, line int) {
	if _, known := k.lines[text]; !known {
		k.lines[text] = line
	}
}

// mistyped names the last key of a field that holds the wrong type.
func mistyped(err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return e.Field[strings.LastIndexByte(e.Field, '.')+1:]
	}
	return ""
}

// withoutValue keeps the values of a kustomization out of an error.
func withoutValue(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("the field %q must not be of type %s", e.Field, e.Value)
	}
	return errors.New("not a kustomization that kustomize reads: an unknown field by way of a merge key?")
}
