package trust

import (
	"context"

	"github.com/fleetling/fleetling/sources"
)

// accept verifies c by the keys s, or finds that it is a merge that adds
// nothing to what they signed.
func (w *walk) accept(ctx context.Context, c Commit, s Signers) (Signature, error) {
	sig, err := w.Verify(c, s)
	if reason := sources.ReasonOf(err); reason == "" || reason == sources.NonCanonicalSignature {
		return sig, err
	}
	merged, ok, mergeErr := w.mergedBy(ctx, c, s)
	if mergeErr != nil {
		return Signature{}, mergeErr
	}
	if ok {
		return merged, nil
	}
	return Signature{}, err
}

// mergedBy gives the signature that a merge made by a forge's button stands on:
// its first parent is an ancestor of its second, its tree is that of the
// second, and the second is signed by one of s.
func (w *walk) mergedBy(ctx context.Context, c Commit, s Signers) (Signature, bool, error) {
	second, ok, err := w.sameTree(ctx, c)
	if err != nil || !ok {
		return Signature{}, false, err
	}
	sig, err := w.Verify(second, s)
	if sources.ReasonOf(err) != "" {
		return Signature{}, false, nil
	}
	if err == nil {
		ok, err = w.isAncestor(ctx, c.Parents[0], second)
	}
	return sig, ok, err
}

// addsNothing says whether c is a merge that has an ancestor of its second
// parent as its first, and the tree of the second.
func (w *walk) addsNothing(ctx context.Context, c Commit) (bool, error) {
	second, ok, err := w.sameTree(ctx, c)
	if err != nil || !ok {
		return false, err
	}
	return w.isAncestor(ctx, c.Parents[0], second)
}

// sameTree gives the second parent of a merge of two that has its tree.
func (w *walk) sameTree(ctx context.Context, c Commit) (second Commit, ok bool, err error) {
	if len(c.Parents) != 2 {
		return Commit{}, false, nil
	}
	second, err = w.commit(ctx, c.Parents[1])
	if sources.ReasonOf(err) == sources.MalformedCommit {
		return Commit{}, false, nil
	}
	return second, second.Tree == c.Tree, err
}

// isAncestor looks for old among the ancestors of c, the nearest first. Where
// that takes more than maxAncestors commits the answer is no: a branch that is
// so far ahead is not what a merge button merges.
func (w *walk) isAncestor(ctx context.Context, old string, c Commit) (bool, error) {
	seen := map[string]bool{c.ID: true}
	for queue := []Commit{c}; len(queue) > 0; queue = queue[1:] {
		for _, parent := range queue[0].Parents {
			if parent == old {
				return true, nil
			}
			if seen[parent] {
				continue
			}
			if len(seen) == maxAncestors {
				return false, nil
			}
			seen[parent] = true
			next, err := w.commit(ctx, parent)
			if sources.ReasonOf(err) == sources.MalformedCommit {
				// Nothing can be learned through it.
				continue
			}
			if err != nil {
				return false, err
			}
			queue = append(queue, next)
		}
	}
	return false, nil
}
