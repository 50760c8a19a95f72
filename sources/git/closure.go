package git

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// closure checks that nothing is missing of what a head needs.
type closure struct {
	store *store
	fresh *pack
	seen  map[plumbing.Hash]plumbing.ObjectType
}

// checkClosure walks from the heads over all that came in the pack fresh: commits,
// their parents, their trees, the files in these. What is in an older pack was
// checked when that one came, so being there is enough. Without a fresh pack it
// walks over everything: a head may never have been one.
func checkClosure(ctx context.Context, s *store, fresh *pack, heads ...plumbing.Hash) error {
	_, err := reach(ctx, s, fresh, heads...)
	return err
}

// reach is checkClosure that gives all that it saw.
func reach(ctx context.Context, s *store, fresh *pack, heads ...plumbing.Hash) (map[plumbing.Hash]plumbing.ObjectType, error) {
	c := &closure{store: s, fresh: fresh, seen: map[plumbing.Hash]plumbing.ObjectType{}}
	commits, trees := slices.Clone(heads), []plumbing.Hash(nil)
	for len(commits)+len(trees) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if n := len(trees); n > 0 { // trees first: the list stays as short as it can
			id := trees[n-1]
			trees, err = c.tree(id, trees[:n-1])
		} else {
			id := commits[len(commits)-1]
			commits, trees, err = c.commit(id, commits[:len(commits)-1])
		}
		if err != nil {
			return nil, err
		}
	}
	return c.seen, nil
}

// news says whether an object has to be read. It is an error where it is
// missing, or named as something else elsewhere.
func (c *closure) news(id plumbing.Hash, kind plumbing.ObjectType) (bool, error) {
	if before, ok := c.seen[id]; ok {
		if before != kind {
			return false, fmt.Errorf("%s: %w: it is named as %s and as %s", id, errGarbled, before, kind)
		}
		return false, nil
	}
	c.seen[id] = kind
	p, _ := c.store.find(id)
	if p == nil {
		return false, fmt.Errorf("%s: %w", id, errMissing)
	}
	return c.fresh == nil || p == c.fresh, nil
}

func (c *closure) commit(id plumbing.Hash, commits []plumbing.Hash) (more, trees []plumbing.Hash, err error) {
	if read, err := c.news(id, plumbing.CommitObject); err != nil || !read {
		return commits, nil, err
	}
	raw, err := c.store.object(plumbing.CommitObject, id)
	if err != nil {
		return nil, nil, err
	}
	tree, parents, err := parseCommit(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("commit %s: %w", id, err)
	}
	return append(commits, parents...), []plumbing.Hash{tree}, nil
}

func (c *closure) tree(id plumbing.Hash, trees []plumbing.Hash) ([]plumbing.Hash, error) {
	if read, err := c.news(id, plumbing.TreeObject); err != nil || !read {
		return trees, err
	}
	raw, err := c.store.object(plumbing.TreeObject, id)
	if err != nil {
		return nil, err
	}
	entries, err := parseTree(raw)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w", id, err)
	}
	for _, entry := range entries {
		switch entry.kind {
		case kindFolder:
			trees = append(trees, entry.id)
		case kindSubmodule, kindOdd: // not sent, and never read
		default:
			if _, err := c.news(entry.id, plumbing.BlobObject); err != nil {
				return nil, err
			}
		}
	}
	return trees, nil
}

// parseCommit reads the header lines that git writes first: one tree, then the
// parents. Whether the rest is as git writes it is not looked at here.
func parseCommit(raw []byte) (tree plumbing.Hash, parents []plumbing.Hash, err error) {
	raw, tree, ok := header(raw, "tree ")
	if !ok {
		return tree, nil, fmt.Errorf("%w: it does not start with its tree", errGarbled)
	}
	for {
		rest, parent, ok := header(raw, "parent ")
		if !ok {
			return tree, parents, nil
		}
		raw, parents = rest, append(parents, parent)
	}
}

// header takes a line of a key and an object id off.
func header(raw []byte, key string) (rest []byte, id plumbing.Hash, ok bool) {
	line, rest, found := bytes.Cut(raw, []byte("\n"))
	text, has := bytes.CutPrefix(line, []byte(key))
	if !found || !has || len(text) != hex.EncodedLen(len(id)) {
		return raw, id, false
	}
	_, err := hex.Decode(id[:], text)
	return rest, id, err == nil
}
