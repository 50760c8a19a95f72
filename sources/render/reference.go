package render

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// references reads the other files that a kustomization names.
func (s *scan) references(k *kustomization) {
	json, merges := k.oldPatches()
	for _, patch := range slices.Concat(k.spec.Patches, json) {
		s.patch(k, patch.Path, patch.Patch)
	}
	for _, patch := range merges {
		s.inlineOrFile(k, string(patch))
	}
	for _, replacement := range k.spec.Replacements {
		s.optional(k, replacement.Path)
	}
	for _, written := range slices.Concat(k.spec.Configurations, k.spec.Crds) {
		s.configuration(k, written)
	}
	for _, args := range k.spec.ConfigMapGenerator {
		s.generator(k, args.KvPairSources, false)
	}
	for _, args := range k.spec.SecretGenerator {
		s.generator(k, args.KvPairSources, true)
	}
	for _, list := range [][]string{k.spec.Generators, k.spec.Transformers, k.spec.Validators} {
		for _, written := range list {
			s.plugin(k, written)
		}
	}
}

// named reads one file that is not a manifest; ok is false when there is none.
func (s *scan) named(k *kustomization, written string) (name string, data []byte, ok bool) {
	name, _, what := s.lookup(k, written)
	switch what {
	case kindFile:
		data, ok = s.data(k, name, written)
	case kindFolder:
		s.problems.add(k.at(written), "%s is a folder; a file belongs here", name)
	case kindAbsent: // lookup has said why
	}
	return name, data, ok
}

func (s *scan) optional(k *kustomization, written string) {
	if written == "" {
		return
	}
	if name, data, ok := s.named(k, written); ok {
		docs, _ := s.problems.documents(name, data)
		s.hideAll(docs)
	}
}

func (s *scan) patch(k *kustomization, written, inline string) {
	s.optional(k, written)
	if inline != "" {
		s.inline(k, inline)
	}
}

// inline checks YAML that stands in a kustomization as text. Its own lines are
// not those of the file: what is wrong is told for the line it begins on.
func (s *scan) inline(k *kustomization, text string) []document {
	at := k.at(text)
	own := &problems{}
	docs, _ := own.documents(k.file, []byte(text))
	for _, e := range own.list {
		e.Line = at.line
		s.problems.put(e)
	}
	s.hideAll(docs)
	return docs
}

func (s *scan) hideAll(docs []document) {
	for _, doc := range docs {
		s.hide(doc.node)
	}
}

// inlineOrFile takes a text that kustomize reads as YAML where it can, and as a
// path where it can't.
func (s *scan) inlineOrFile(k *kustomization, text string) (place, []document) {
	if fetched(text) {
		s.problems.add(k.at(text), "%w", errRemote)
		return place{}, nil
	}
	quiet := &problems{}
	docs, _ := quiet.documents("", []byte(text))
	objects := len(docs) > 0
	for _, doc := range docs {
		objects = objects && doc.node.Kind == yaml.MappingNode
	}
	if objects || strings.Contains(text, "\n") {
		return k.at(text), s.inline(k, text)
	}
	name, data, ok := s.named(k, text)
	if !ok {
		return place{}, nil
	}
	docs, _ = s.problems.documents(name, data)
	s.hideAll(docs)
	return place{file: name}, docs
}
