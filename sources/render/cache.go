package render

import (
	"container/list"
	"encoding/json"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetling/fleetling/sources"
)

// maxCached is how many requests a Renderer remembers the result of.
const maxCached = 64

// cache keeps the last result of each request with everything that was read for
// it, the least recently used one last. Together the results hold no more bytes
// than one add-on may read.
type cache struct {
	limits  sources.Limits
	order   *list.List
	entries map[string]*list.Element
	bytes   int64
}

// entry is a result at rest: as text it takes less than half of what it takes as
// objects.
type entry struct {
	key      string
	trace    trace
	texts    [][]byte
	files    []string
	digest   string
	warnings []sources.Error
	bytes    int64
}

func newEntry(key string, t trace, result Result, texts [][]byte) *entry {
	e := &entry{key: key, trace: t, texts: texts, digest: result.Digest}
	for i, object := range result.Objects {
		e.files = append(e.files, object.File)
		e.bytes += int64(len(texts[i]))
	}
	for _, warning := range result.Warnings {
		e.warnings = append(e.warnings, *warning)
	}
	return e
}

// result is the caller's own, each time.
func (e *entry) result() (Result, error) {
	out := Result{Digest: e.digest}
	for i, text := range e.texts {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			return Result{}, fmt.Errorf("%s: %w", e.files[i], err)
		}
		out.Objects = append(out.Objects, Object{object, e.files[i]})
	}
	for _, warning := range e.warnings {
		out.Warnings = append(out.Warnings, &warning)
	}
	return out, nil
}

func newCache(limits sources.Limits) *cache {
	return &cache{limits: limits, order: list.New(), entries: map[string]*list.Element{}}
}

// key tells requests apart by their content.
func (r Request) key() (string, error) {
	text, err := json.Marshal(r)
	return string(text), err
}

// find gives what is kept of an equal request if all that was read for it still
// reads the same, or nil.
func (c *cache) find(key string, fsys fs.FS) *entry {
	element, known := c.entries[key]
	if !known {
		return nil
	}
	e := element.Value.(*entry)
	if !e.trace.holds(fsys, c.limits) {
		return nil
	}
	c.order.MoveToFront(element)
	return e
}

func (c *cache) store(e *entry) {
	if old, known := c.entries[e.key]; known {
		c.remove(old)
	}
	c.entries[e.key] = c.order.PushFront(e)
	c.bytes += e.bytes
	for c.order.Len() > maxCached || c.bytes > c.limits.TreeBytes {
		c.remove(c.order.Back())
	}
}

func (c *cache) remove(element *list.Element) {
	e := c.order.Remove(element).(*entry)
	delete(c.entries, e.key)
	c.bytes -= e.bytes
}
