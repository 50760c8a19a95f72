package render

import (
	"container/list"
	"encoding/json"
	"io/fs"

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

type entry struct {
	key    string
	trace  trace
	result Result
	bytes  int64
}

func newCache(limits sources.Limits) *cache {
	return &cache{limits: limits, order: list.New(), entries: map[string]*list.Element{}}
}

// key tells requests apart by their content.
func (r Request) key() (string, error) {
	text, err := json.Marshal(r)
	return string(text), err
}

// find gives the result of an equal request if all that was read for it still
// reads the same.
func (c *cache) find(key string, fsys fs.FS) (Result, bool) {
	element, known := c.entries[key]
	if !known {
		return Result{}, false
	}
	e := element.Value.(*entry)
	if !e.trace.holds(fsys, c.limits) {
		return Result{}, false
	}
	c.order.MoveToFront(element)
	return e.result, true
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
