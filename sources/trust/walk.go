package trust

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/fleetling/fleetling/sources"
)

const (
	// signersDir is where a tree keeps the keys.
	signersDir = "signers"
	// maxSteps is how many commits one verdict may walk along one line.
	maxSteps = 50_000
	// maxLookback is how far back a verdict that is given at every poll looks
	// for the last readable set of signers.
	maxLookback = 1000
	// maxAncestors is how many commits the question "is P an ancestor of S"
	// may read.
	maxAncestors = 10_000
)

// Repository is what a verdict reads. A commit that is not there is an error
// that wraps fs.ErrNotExist; every error is returned wrapped and is no verdict.
type Repository interface {
	// Commit gives the stored bytes of a commit object.
	Commit(ctx context.Context, id string) ([]byte, error)
	// Tree gives the content of a tree object.
	Tree(ctx context.Context, tree string) (fs.FS, error)
}

// walk is one verdict on a head.
type walk struct {
	Policy
	repo Repository
	// The last folder of keys, as read: most commits don't change it.
	tree    string
	files   []keyFile
	signers Signers
}

// newWalk makes sure first that all of the policy can be read. Time has no floor
// before the pin, or the commit on the way, that follow begins at.
func newWalk(p Policy, repo Repository) (*walk, error) {
	p.NotBefore = time.Time{}
	_, err := p.revokes()
	return &walk{Policy: p, repo: repo}, err
}

// commit reads one commit, without looking into its signature.
func (w *walk) commit(ctx context.Context, id string) (Commit, error) {
	if err := ctx.Err(); err != nil {
		return Commit{}, err
	}
	raw, err := w.repo.Commit(ctx, id)
	if err != nil {
		return Commit{}, fmt.Errorf("read commit %.12s: %w", id, err)
	}
	return parseObject(id, raw)
}

// signersOf gives the keys in the tree of c.
func (w *walk) signersOf(ctx context.Context, c Commit) (Signers, error) {
	if w.tree == c.Tree {
		return w.signers, nil
	}
	tree, err := w.repo.Tree(ctx, c.Tree)
	if err != nil {
		return Signers{}, fmt.Errorf("read tree of commit %.12s: %w", c.ID, err)
	}
	files, _, err := readKeyFiles(tree, signersDir)
	if sources.ReasonOf(err) == sources.LimitExceeded {
		return Signers{}, refuse(sources.LimitExceeded, c.ID, "%w", err)
	}
	if err != nil {
		return Signers{}, fmt.Errorf("commit %.12s: %w", c.ID, err)
	}
	if w.tree == "" || !slices.Equal(files, w.files) {
		w.signers, _ = parseKeyFiles(signersDir, files)
	}
	w.tree, w.files = c.Tree, files
	return w.signers, nil
}

// authority gives who may sign a child of c: the signers of c, or of the last
// commit before it on the first-parent line that leaves a readable key, at most
// so many steps back.
func (w *walk) authority(ctx context.Context, c Commit, steps int) (Signers, error) {
	for range steps {
		s, err := w.signersOf(ctx, c)
		if err != nil || !s.Empty() || len(c.Parents) == 0 {
			return s, err
		}
		if c, err = w.commit(ctx, c.Parents[0]); err != nil {
			return Signers{}, err
		}
	}
	return Signers{}, refuse(sources.LimitExceeded, c.ID, "no key is in signers/ of this one and the %d after it", steps)
}

// parentAuthority gives who may sign c.
func (w *walk) parentAuthority(ctx context.Context, c Commit, steps int) (Signers, error) {
	if len(c.Parents) == 0 {
		return Signers{}, nil
	}
	parent, err := w.commit(ctx, c.Parents[0])
	if err != nil {
		return Signers{}, err
	}
	return w.authority(ctx, parent, steps)
}

// line goes back from head along first parents until stop, and gives the
// commits after it, oldest first, and the one it stopped at. found is false
// where the line ends first.
func (w *walk) line(ctx context.Context, head string, stop func(Commit) (bool, error)) (ids []string, at Commit, found bool, err error) {
	for id := head; len(ids) <= maxSteps; {
		c, err := w.commit(ctx, id)
		if err != nil {
			return nil, Commit{}, false, err
		}
		found, err := stop(c)
		if err != nil {
			return nil, Commit{}, false, err
		}
		if found {
			slices.Reverse(ids)
			return ids, c, true, nil
		}
		if len(c.Parents) == 0 {
			return nil, Commit{}, false, nil
		}
		ids = append(ids, id)
		id = c.Parents[0]
	}
	return nil, Commit{}, false, refuse(sources.LimitExceeded, head, "it is more than %d commits ahead of the pin, or apart from it", maxSteps)
}

// follow verifies the commits ids, of which the first is a child of from and
// each is the first parent of the next, by the signers of their parents. It
// gives the last one and who vouches for it.
//
// The signing time of each is a floor for the next, as if the agent had pinned
// it in between: a cluster that polled often and one that polled once come to
// the same verdict.
func (w *walk) follow(ctx context.Context, from Commit, ids []string) (last Commit, signer Signer, err error) {
	authority, err := w.authority(ctx, from, maxSteps)
	if err != nil {
		return Commit{}, Signer{}, err
	}
	for _, id := range ids {
		if last, err = w.commit(ctx, id); err != nil {
			return Commit{}, Signer{}, err
		}
		sig, err := w.accept(ctx, last, authority)
		if err != nil {
			return Commit{}, Signer{}, err
		}
		if sig.SignedAt.After(w.NotBefore) {
			w.NotBefore = sig.SignedAt
		}
		// Read also for the head: what would lock the next commit out is
		// refused now, while the pin is before it.
		s, err := w.signersOf(ctx, last)
		if err != nil {
			return Commit{}, Signer{}, err
		}
		if !s.Empty() {
			authority = s
		}
		signer = sig.Signer
	}
	return last, signer, nil
}
