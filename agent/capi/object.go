package capi

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/fleetling/fleetling/sources"
)

// MaxFileBytes bounds one file of objects, in bytes.
const MaxFileBytes = 16 << 20

// Object is a Kubernetes object and where it is written.
type Object struct {
	*unstructured.Unstructured
	// File is "" for an object that was made here; Line counts from 1.
	File string
	Line int
}

// String gives Kind/namespace/name, or Kind/name.
func (o Object) String() string {
	if o.GetNamespace() == "" {
		return o.GetKind() + "/" + o.GetName()
	}
	return o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName()
}

func (o Object) is(group, kind string) bool {
	of := o.GroupVersionKind()
	return of.Group == group && of.Kind == kind
}

// Read reads the YAML documents of a file; empty ones are left out. Errors are
// *sources.Error and hold no value.
func Read(file string, data []byte) ([]Object, error) {
	if len(data) > MaxFileBytes {
		return nil, &sources.Error{Reason: sources.LimitExceeded, File: file, Err: fmt.Errorf("the file has more than %d bytes", MaxFileBytes)}
	}
	var objects []Object
	for _, doc := range split(data) {
		content, err := doc.decode()
		if err != nil {
			return nil, &sources.Error{Reason: sources.RenderFailed, File: file, Line: doc.line, Err: err}
		}
		if content != nil {
			objects = append(objects, Object{&unstructured.Unstructured{Object: content}, file, doc.line})
		}
	}
	return objects, nil
}

// document is the text of one YAML document. line is that of its first key.
type document struct {
	text []byte
	line int
}

// split cuts before each line that begins with ---: no YAML text can hold one.
func split(data []byte) []document {
	var docs []document
	current, started, number := document{}, false, 0
	for line := range bytes.Lines(data) {
		number++
		word := strings.TrimSpace(string(line))
		if separates(line) {
			docs, current, started = append(docs, current), document{}, false
			word = strings.TrimSpace(strings.TrimPrefix(word, "---"))
		}
		if !started && word != "" && word[0] != '#' {
			current.line, started = number, true
		}
		current.text = append(current.text, line...)
	}
	return append(docs, current)
}

func separates(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n"))
}

// decode gives nil for a document that holds nothing.
func (d document) decode() (map[string]any, error) {
	if d.line == 0 {
		return nil, nil
	}
	text, err := yaml.YAMLToJSONStrict(d.text)
	if err != nil {
		return nil, fmt.Errorf("the document that begins here does not parse (lines count from its ---): %w", err)
	}
	var content any
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, errors.New("the document that begins here is not JSON that Kubernetes reads")
	}
	if content == nil {
		return nil, nil
	}
	object, _ := content.(map[string]any)
	for _, key := range []string{"apiVersion", "kind"} {
		if value, ok := object[key].(string); !ok || value == "" {
			return nil, fmt.Errorf("not an object: %s is missing", key)
		}
	}
	if kind, _ := object["kind"].(string); strings.HasSuffix(kind, "List") && object["items"] != nil {
		return nil, fmt.Errorf("a %s: write its items as documents of their own", kind)
	}
	return object, nil
}

// Text writes objects as YAML documents, in their order, keys sorted.
func Text(objects []Object) ([]byte, error) {
	var out bytes.Buffer
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes(), nil
}
