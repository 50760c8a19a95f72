package render

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
)

// generator reads the files of a ConfigMap or Secret that is generated.
func (s *scan) generator(k *kustomization, from types.KvPairSources, secret bool) {
	for _, literal := range from.LiteralSources {
		at := k.at(literal)
		name, value, ok := strings.Cut(literal, "=")
		if !ok || name == "" {
			s.problems.add(at, "a literal is written KEY=VALUE")
		}
		s.content(at, []byte(value), secret)
	}
	for _, source := range from.FileSources {
		written := source
		if _, after, named := strings.Cut(source, "="); named {
			written = after
		}
		if strings.Contains(written, "=") || strings.HasPrefix(source, "=") {
			s.problems.add(k.at(source), "a file is written PATH or KEY=PATH, and neither holds another `=`")
			continue
		}
		k.note(written, k.at(source).line)
		if name, data, ok := s.named(k, written); ok {
			s.content(place{file: name}, data, secret)
		}
	}
	for _, written := range slices.Concat(from.EnvSources, []string{from.EnvSource}) {
		if written == "" {
			continue
		}
		if name, data, ok := s.named(k, written); ok {
			s.environment(name, data, secret)
		}
	}
}

// content refuses a value that SOPS encrypted, and keeps a secret one out of
// errors.
func (s *scan) content(at place, value []byte, secret bool) {
	if bytes.Contains(value, []byte("ENC[AES256_GCM,")) {
		s.problems.add(at, encrypted)
	}
	if secret {
		s.hideValue(string(value))
	}
}

// environment reads the lines of an env file.
func (s *scan) environment(name string, data []byte, secret bool) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for line := 1; lines.Scan(); line++ {
		if !utf8.Valid(lines.Bytes()) {
			s.problems.add(place{name, line}, "not UTF-8: save the file as UTF-8")
			return
		}
		_, value, _ := strings.Cut(lines.Text(), "=")
		s.content(place{name, line}, []byte(value), secret)
	}
}

// hide keeps the values of a Secret out of errors.
func (s *scan) hide(n *yaml.Node) {
	if text(n, "kind") != "Secret" {
		return
	}
	for _, name := range []string{"data", "stringData"} {
		each(field(n, name), func(v *yaml.Node) { s.hideValue(v.Value) })
	}
}

// hideValue leaves out what is too short to tell apart from other text.
func (s *scan) hideValue(value string) {
	if value = strings.TrimSpace(value); len(value) >= 4 {
		s.secrets = append(s.secrets, value)
	}
}
