package render

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
	sigsyaml "sigs.k8s.io/yaml"
)

// plugin checks the configuration of a generator, transformer or validator:
// only those that are built into kustomize run, and none of them is a chart.
func (s *scan) plugin(k *kustomization, written string) {
	at, docs := s.inlineOrFile(k, written)
	for _, doc := range docs {
		here := at
		if here.line == 0 {
			here.line = doc.line + doc.node.Line
		}
		apiVersion, kind := text(doc.node, "apiVersion"), text(doc.node, "kind")
		switch {
		case apiVersion != "builtin":
			s.problems.add(here, "%.60q is a program to run and not one of kustomize's own (apiVersion: builtin): refused", apiVersion+" "+kind)
		case strings.HasPrefix(kind, "Helm"):
			s.problems.add(here, "%.60q is refused: charts are not templated here; commit the output of `helm template`", kind)
		case !strings.HasSuffix(kind, "Transformer") && !strings.HasSuffix(kind, "Generator"):
			s.problems.add(here, "%.60q is none of kustomize's own", kind)
		default:
			s.pluginFiles(k, k.lines[written], doc.node)
		}
	}
}

// pluginFiles reads the files that a built-in plugin names itself. What is
// wrong with one is told for the line that lists the plugin.
func (s *scan) pluginFiles(k *kustomization, line int, n *yaml.Node) {
	var config struct {
		Path                string                   `json:"path"`
		Paths               []string                 `json:"paths"`
		Replacements        []types.ReplacementField `json:"replacements"`
		Patch               string                   `json:"patch"`
		Patches             string                   `json:"patches"`
		JSONOp              string                   `json:"jsonOp"`
		types.KvPairSources `json:",inline"`
	}
	// Read as kustomize reads it, which takes Path for path.
	data, err := yaml.Marshal(n)
	if err == nil {
		err = sigsyaml.Unmarshal(data, &config)
	}
	if err != nil {
		s.problems.add(k.place, "the configuration of %.60q holds a field of the wrong type", text(n, "kind"))
		return
	}
	for _, text := range slices.Concat([]string{config.Path, config.EnvSource}, config.Paths, config.FileSources, config.EnvSources) {
		k.note(text, line)
	}
	s.optional(k, config.Path)
	for _, text := range config.Paths {
		s.inlineOrFile(k, text)
	}
	for _, replacement := range config.Replacements {
		k.note(replacement.Path, line)
		s.optional(k, replacement.Path)
	}
	for _, text := range []string{config.Patch, config.Patches, config.JSONOp} {
		if text != "" {
			s.inline(k, text)
		}
	}
	s.generator(k, config.KvPairSources, text(n, "kind") == "SecretGenerator")
}
