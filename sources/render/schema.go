package render

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// configuration reads a transformer configuration or the schema of a CRD.
func (s *scan) configuration(k *kustomization, written string) {
	name, data, ok := s.named(k, written)
	if !ok {
		return
	}
	docs, good := s.problems.documents(name, data)
	if !good {
		return
	}
	if len(docs) != 1 || docs[0].node.Kind != yaml.MappingNode {
		s.problems.add(place{file: name}, "one mapping belongs here")
		return
	}
	refs := map[string][]string{}
	for i := 0; i < len(docs[0].node.Content)-1; i += 2 {
		refs[docs[0].node.Content[i].Value] = schemaRefs(docs[0].node.Content[i+1])
	}
	if circular(refs) {
		s.problems.add(place{file: name}, "its schemas refer to each other in a circle, which kustomize would follow for ever")
	}
}

func schemaRefs(n *yaml.Node) (refs []string) {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "$ref" {
			refs = append(refs, child.Value)
		}
		refs = append(refs, schemaRefs(child)...)
	}
	return refs
}

// circular says whether a name leads back to itself.
func circular(refs map[string][]string) bool {
	open, done := map[string]bool{}, map[string]bool{}
	var leadsBack func(name string) bool
	leadsBack = func(name string) bool {
		if open[name] || done[name] {
			return open[name]
		}
		open[name] = true
		if slices.ContainsFunc(refs[name], leadsBack) {
			return true
		}
		open[name], done[name] = false, true
		return false
	}
	for name := range refs {
		if leadsBack(name) {
			return true
		}
	}
	return false
}
