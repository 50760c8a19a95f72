package render

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// document is one YAML document of a file: strict, without surprises.
type document struct {
	node *yaml.Node
	// line is the line of the file on which the document begins, minus one:
	// the parser counts from there.
	line int
	// alone says that its file holds no `---` line.
	alone bool
	// aliases says that it holds aliases or merge keys.
	aliases bool
}

// documents parses a YAML stream, cut at the `---` lines where kustomize cuts
// it. Documents that hold nothing are left out; good says that nothing was
// refused.
func (p *problems) documents(name string, data []byte) (docs []document, good bool) {
	if line, ok := invalidText(data); !ok {
		p.add(place{name, line}, "not UTF-8: save the file as UTF-8")
		return nil, false
	}
	pieces, err := split(strings.ReplaceAll(string(data), "\r\n", "\n"))
	if err != nil {
		p.add(place{name, errorLine(err)}, "%w", err)
		return nil, false
	}
	good = true
	for _, piece := range pieces {
		node, err := parse(piece.text)
		if err != nil {
			p.add(place{name, piece.line + errorLine(err)}, "%s", message(err, piece.text))
			good = false
			continue
		}
		if node == nil {
			continue
		}
		doc := document{node: node, line: piece.line, alone: len(pieces) == 1}
		if p.strict(name, &doc) {
			docs = append(docs, doc)
		} else {
			good = false
		}
	}
	return docs, good
}

// lineError is an error with the line that it stands on.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return e.err.Error() }
func (e *lineError) Unwrap() error { return e.err }

type piece struct {
	text string
	line int
}

// split cuts where kustomize cuts: at a line that begins with three dashes and
// holds nothing else but a comment. The line after a cut is never one.
func split(text string) ([]piece, error) {
	var pieces []piece
	start, startLine, cut := 0, 0, true
	for pos, line := 0, 0; pos < len(text); line++ {
		end := strings.IndexByte(text[pos:], '\n')
		if end < 0 {
			break
		}
		end += pos + 1
		if !cut && strings.HasPrefix(text[pos:], "---") {
			if rest := strings.TrimSpace(text[pos+3 : end]); rest != "" && rest[0] != '#' {
				return nil, &lineError{line + 1, errors.New("a `---` line holds nothing but a comment")}
			}
			pieces = append(pieces, piece{text[start:pos], startLine})
			start, startLine, cut = end, line+1, true
		} else {
			cut = false
		}
		pos = end
	}
	return append(pieces, piece{text[start:], startLine}), nil
}

// parse gives the one document of a piece, and nil when it holds nothing.
func parse(text string) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	}
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, err
	case !empty(second.Content[0]):
		return nil, &lineError{second.Line, errors.New("a second document that no `---` line of its own begins: kustomize would not read it")}
	}
	if root := first.Content[0]; !empty(root) {
		return root, nil
	}
	return nil, nil
}

// empty says whether kustomize drops a document without a word.
func empty(n *yaml.Node) bool {
	return n.ShortTag() == "!!null" || (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) && len(n.Content) == 0
}

// errorLine takes the line out of a parser's error: the parser has no other
// place for it.
func errorLine(err error) int {
	if on, ok := errors.AsType[*lineError](err); ok {
		return on.line
	}
	if m := regexp.MustCompile(`line (\d+)`).FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(m[1])
		return line
	}
	return 1
}

// message is the parser's, without the line, which counts from the document;
// and with a hint at what a file that is no YAML most often is.
func message(err error, text string) string {
	if on, ok := errors.AsType[*lineError](err); ok {
		return on.Error()
	}
	said := regexp.MustCompile(`^yaml: (line \d+: )?`).ReplaceAllString(err.Error(), "")
	if strings.Contains(text, "{{") {
		return "not YAML: " + said + ": it looks like a template; nothing is templated here, commit the output of `helm template`"
	}
	return "not YAML: " + said
}

// invalidText finds the line of the first byte that is not UTF-8.
func invalidText(data []byte) (int, bool) {
	if utf8.Valid(data) {
		return 0, true
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return bytes.Count(data[:i], []byte("\n")) + 1, false
		}
		i += size
	}
	return 0, true
}
