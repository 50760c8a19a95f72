package fleet

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetling/fleetling/sources"
)

const (
	apiVersion = "config.fleetling.dev/v1alpha1"
	// maxItems bounds the keys of one mapping and the items of one list that
	// has no smaller bound of its own.
	maxItems = 1000
)

// Text is a string of fleetling.yaml and its line there.
type Text struct {
	Value string
	Line  int
}

// item is a node, and the name and line of the key that it stands under.
type item struct {
	node *yaml.Node
	name string
	line int
}

// empty tells whether a list is written there and holds nothing.
func (i item) empty() bool { return i.node.Kind == yaml.SequenceNode && len(i.node.Content) == 0 }

func (i item) null() bool { return i.node.Kind == yaml.ScalarNode && i.node.ShortTag() == "!!null" }

// documents parses data; documents that hold nothing are left out.
func documents(data []byte) ([]item, error) {
	var docs []item
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		root := item{node: doc.Content[0], name: "the document", line: doc.Content[0].Line}
		if !root.null() {
			docs = append(docs, root)
		}
	}
}

// decoder reads nodes into values and reports what does not fit. It goes on
// after a problem: the caller looks at problems when all is read.
type decoder struct {
	place
	problems *problems
	// reason is that of a problem which has no other.
	reason sources.Reason
	// lenient ignores unknown keys and anchors: the objects of others.
	lenient bool
}

func (d decoder) report(line int, reason sources.Reason, format string, args ...any) {
	d.problems.add(d.on(line), fault(reason, format, args...))
}

// one parses a file that holds one document.
func (d decoder) one(data []byte) (item, bool) {
	docs, err := documents(data)
	switch {
	case err != nil:
		d.unparsable(err)
	case len(docs) == 0:
		d.report(0, d.reason, "the file is empty")
	case len(docs) > 1:
		d.report(docs[1].line, d.reason, "a second document begins: the file must hold one")
	}
	if err != nil || len(docs) != 1 {
		return item{}, false
	}
	return docs[0], true
}

func (d decoder) unparsable(err error) {
	d.report(0, d.reason, "the file does not parse (the parser's line may be one too low): %w", err)
}

// version compares what a document says it is. Where it is something else its
// keys may mean anything, so nothing else is told about it.
func (d decoder) version(version, kind Text, want string) {
	switch {
	case version.Value != "" && version.Value != apiVersion:
		d.problems.only(d.on(version.Line), fault(d.reason,
			"apiVersion %.80q is not known to this agent, %s is: upgrade the agent first", version.Value, apiVersion))
	case kind.Value != "" && kind.Value != want:
		d.problems.only(d.on(kind.Line), fault(d.reason, "kind is %.80q, it must be %s", kind.Value, want))
	}
}

// is tells whether at is written out there as a node of that kind.
func (d decoder) is(at item, kind yaml.Kind, what string) bool {
	switch {
	case at.node.Kind == yaml.AliasNode:
		d.report(at.line, d.reason, "%.80s is an alias, *%.80s: write the value out", at.name, at.node.Value)
	case at.node.Anchor != "" && !d.lenient:
		d.report(at.line, d.reason, "%.80s has an anchor, &%.80s: aliases are not followed, take it away", at.name, at.node.Anchor)
	case at.null():
		d.report(at.line, d.reason, "%.80s has no value: it must be %s", at.name, what)
	case at.node.Kind != kind:
		d.report(at.line, d.reason, "%.80s must be %s", at.name, what)
	default:
		return true
	}
	return false
}

// each reads a mapping key by key, in file order. It gives false when there was
// none to read.
func (d decoder) each(at item, read func(key string, value item)) bool {
	if !d.is(at, yaml.MappingNode, "a mapping") {
		return false
	}
	if len(at.node.Content)/2 > maxItems {
		d.report(at.line, sources.LimitExceeded, "%.80s has %d keys: at most %d are read", at.name, len(at.node.Content)/2, maxItems)
		return false
	}
	seen := map[string]int{}
	for pair := range slices.Chunk(at.node.Content, 2) {
		key, ok := d.key(pair[0])
		if !ok {
			continue
		}
		if first, twice := seen[key]; twice {
			d.report(pair[0].Line, d.reason, "key %.80q stands twice, first in line %d", key, first)
			continue
		}
		seen[key] = pair[0].Line
		read(key, item{node: pair[1], name: key, line: pair[0].Line})
	}
	return true
}

func (d decoder) key(node *yaml.Node) (string, bool) {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!merge" {
		d.report(node.Line, d.reason, "<< is a merge key: write the keys out")
		return "", false
	}
	if node.Kind == yaml.ScalarNode && d.lenient {
		return node.Value, true // what type a key of others has is their affair
	}
	key, ok := d.text(item{node: node, name: "a key", line: node.Line}, d.reason)
	return key.Value, ok
}

// field is what to do with the value of a key.
type field struct {
	required bool
	read     func(item)
}

type fields map[string]field

// object reads a mapping whose keys are known.
func (d decoder) object(at item, known fields) {
	seen := map[string]bool{}
	read := d.each(at, func(key string, value item) {
		seen[key] = true
		if field, ok := known[key]; ok {
			field.read(value)
		} else if !d.lenient {
			d.report(value.line, sources.UnknownField,
				"key %.80q is not known to this agent (%s): %s are; mend the spelling, or upgrade the agent first and use the key in the next commit",
				key, apiVersion, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	})
	for _, key := range slices.Sorted(maps.Keys(known)) {
		if read && known[key].required && !seen[key] {
			d.report(at.line, d.reason, "%s is missing", key)
		}
	}
}

// list reads a sequence of at most most items, in order.
func (d decoder) list(at item, most int, read func(item)) {
	if !d.is(at, yaml.SequenceNode, "a list") {
		return
	}
	if len(at.node.Content) > most {
		d.report(at.line, sources.LimitExceeded, "%.80s has %d items: at most %d are read", at.name, len(at.node.Content), most)
		return
	}
	for _, node := range at.node.Content {
		read(item{node: node, name: "an item of " + at.name, line: node.Line})
	}
}
