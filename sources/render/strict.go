package render

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxDepth is how deep mappings and lists may nest in one document.
	maxDepth = 100
	// maxGrowth is how many nodes the aliases of one document may add.
	maxGrowth = 10_000
)

// strict walks one document before anything expands or decodes it.
type strict struct {
	problems *problems
	name     string
	line     int
	growth   int
	sizes    map[*yaml.Node]int
	aliases  bool
	good     bool
}

// strict says whether a document is free of what parsers read differently,
// drop in silence or blow up: duplicate keys, keys that are no text, tags,
// aliases beyond a budget, deep nesting; and of what is encrypted.
func (p *problems) strict(name string, doc *document) bool {
	s := &strict{problems: p, name: name, line: doc.line, sizes: map[*yaml.Node]int{}, good: true}
	s.walk(doc.node, 1)
	if s.good && s.growth > maxGrowth {
		s.refuse(doc.node, "its aliases add more than %d nodes: write it out", maxGrowth)
	}
	if doc.node.Kind == yaml.MappingNode {
		if key := keyOf(doc.node, "sops"); key != nil {
			s.refuse(key, encrypted)
		}
	}
	doc.aliases = s.aliases
	return s.good
}

const encrypted = "encrypted by SOPS: decryption is not done; use External Secrets or Sealed Secrets"

func (s *strict) refuse(n *yaml.Node, format string, args ...any) {
	s.good = false
	s.problems.add(place{s.name, s.line + n.Line}, format, args...)
}

func (s *strict) walk(n *yaml.Node, depth int) {
	if depth > maxDepth {
		s.refuse(n, "nests deeper than %d levels", maxDepth)
		return
	}
	switch n.Kind {
	case yaml.ScalarNode:
		s.scalar(n)
	case yaml.AliasNode:
		s.alias(n)
	case yaml.MappingNode:
		s.tag(n, "!!map")
		s.keys(n)
		for i := 1; i < len(n.Content); i += 2 {
			s.walk(n.Content[i], depth+1)
		}
	case yaml.SequenceNode:
		s.tag(n, "!!seq")
		for _, child := range n.Content {
			s.walk(child, depth+1)
		}
	case yaml.DocumentNode: // what is walked is below it
	}
}

func (s *strict) scalar(n *yaml.Node) {
	s.tag(n, "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp")
	if n.ShortTag() == "!!float" && slices.Contains([]string{"inf", "nan"}, strings.ToLower(strings.TrimLeft(n.Value, "+-."))) {
		s.refuse(n, "a number that JSON does not have: quote it")
	}
	if strings.HasPrefix(n.Value, "ENC[") {
		s.refuse(n, encrypted)
	}
}

// tag refuses what would make the value something else than it looks like.
func (s *strict) tag(n *yaml.Node, known ...string) {
	if !slices.Contains(known, n.ShortTag()) {
		s.refuse(n, "the tag %.40q is not known here: write the value without it", n.ShortTag())
	}
}

func (s *strict) keys(n *yaml.Node) {
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if tag := key.ShortTag(); key.Kind != yaml.ScalarNode || tag != "!!str" && tag != "!!merge" {
			s.refuse(key, "a key that is no text: quote it")
			continue
		}
		s.aliases = s.aliases || key.ShortTag() == "!!merge"
		if first, twice := seen[key.Value]; twice {
			s.refuse(key, "the key %.60q stands here twice, first on line %d: parsers keep only one of them", key.Value, first)
			continue
		}
		seen[key.Value] = s.line + key.Line
	}
}

// alias adds what the alias stands for, without walking it again.
func (s *strict) alias(n *yaml.Node) {
	s.aliases = true
	size := s.size(n.Alias)
	if size < 0 {
		s.refuse(n, "an anchor that contains itself")
		return
	}
	s.growth = min(s.growth+size, maxGrowth+1)
}

// size is how many nodes n stands for, cut above the budget, and -1 for a node
// that contains itself.
func (s *strict) size(n *yaml.Node) int {
	if size, known := s.sizes[n]; known {
		return size
	}
	s.sizes[n] = -1
	sum := 1
	children := n.Content
	if n.Kind == yaml.AliasNode {
		children = []*yaml.Node{n.Alias}
	}
	for _, child := range children {
		size := s.size(child)
		if size < 0 {
			return -1
		}
		sum = min(sum+size, maxGrowth+1)
	}
	s.sizes[n] = sum
	return sum
}

// keyOf gives the key node of a mapping, and field its value; nil when there is
// none.
func keyOf(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i < len(n.Content)-1; i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i]
		}
	}
	return nil
}

func field(n *yaml.Node, name string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content)-1; i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}
