package git

import (
	"io/fs"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	maxLinks      = 40 // as Linux
	maxTargetSize = 4096
	maxPathBytes  = 1024
)

// node is an entry and the path at which it really stands, links resolved.
type node struct {
	entry
	path string
}

// walk is a path on its way to a node.
type walk struct {
	tree *tree
	at   []node   // from the root to where we are
	todo []string // the names still to go
	own  int      // how many of todo, at its end, are of the path and not of a link
	hops int
	stay bool // a link at the end of the path is not followed
}

// resolve gives the node that a path leads to, stay for a link at its end itself. No link leads out of the root:
// the walk is over tree objects, and there is nothing above the first.
func (t *tree) resolve(name string, stay bool) (node, error) {
	parts := strings.Split(name, "/")
	w := walk{tree: t, at: []node{{entry: entry{kind: kindFolder, id: t.root}, path: "."}}, todo: parts, own: len(parts), stay: stay}
	if len(name) > maxPathBytes {
		return node{}, tooMuch("the path has %d bytes, more than %d are not read", len(name), maxPathBytes)
	}
	for len(w.todo) > 0 {
		part := w.todo[0]
		w.todo = w.todo[1:]
		own := len(w.todo) < w.own
		w.own = min(w.own, len(w.todo))
		if err := w.step(part, own); err != nil {
			return node{}, err
		}
	}
	return w.at[len(w.at)-1], nil
}

// step goes to one more name. own says that it is of the path itself.
func (w *walk) step(part string, own bool) error {
	here := w.at[len(w.at)-1]
	if here.kind != kindFolder {
		return absent(own)
	}
	switch part {
	case "", ".":
		return nil
	case "..":
		return w.up()
	}
	e, found, err := w.tree.lookup(here.id, part)
	if err != nil {
		return err
	}
	if !found {
		return absent(own)
	}
	if err := e.check(); err != nil {
		return err
	}
	if wanted := w.stay && own && len(w.todo) == 0; e.kind == kindLink && !wanted {
		return w.follow(e)
	}
	return w.enter(node{entry: e, path: path.Join(here.path, part)})
}

func (w *walk) enter(n node) error {
	if depth := w.tree.repository.limits.Depth; n.kind == kindFolder && len(w.at) > depth {
		return tooMuch("folders are nested deeper than limits.depth, %d", depth)
	}
	w.at = append(w.at, n)
	return nil
}

func (w *walk) up() error {
	if len(w.at) == 1 {
		return contentError("is a link that leads out of the repository")
	}
	w.at = w.at[:len(w.at)-1]
	return nil
}

// follow puts a link's target in front of what is still to go.
func (w *walk) follow(e entry) error {
	if w.hops++; w.hops > maxLinks {
		return contentError("is a link in a circle, or behind too many links")
	}
	target, err := w.tree.target(e)
	if err != nil {
		return err
	}
	if target[0] == '/' {
		return contentError("is a link to an absolute path: it must be relative and stay in the repository")
	}
	w.todo = append(strings.Split(target, "/"), w.todo...)
	return nil
}

// target gives a link's text, which is never empty.
func (t *tree) target(e entry) (string, error) {
	content, err := t.repository.object(plumbing.BlobObject, e.id)
	if err == nil && (len(content) == 0 || len(content) > maxTargetSize) {
		err = contentError("is a link without a usable target")
	}
	return string(content), err
}

// absent is fs.ErrNotExist only where the path itself leads nowhere: a link that
// does is broken.
func absent(own bool) error {
	if own {
		return fs.ErrNotExist
	}
	return contentError("is a link to what is not there")
}

// check says why an entry can't be used at all.
func (e entry) check() error {
	switch e.kind {
	case kindSubmodule:
		return contentError("is a submodule: submodules are not supported, commit the files themselves")
	case kindOdd:
		return contentError("has a mode that git does not write: only files, folders and links are read")
	default:
		return checkName(e.name)
	}
}
