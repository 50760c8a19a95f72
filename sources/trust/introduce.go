package trust

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"github.com/fleetling/fleetling/sources"
)

// Introduction is what the configuration says of a repository that has no pin
// yet.
type Introduction struct {
	// Signers are the first signers. They count until there is a pin.
	Signers Signers
	// Commit is the id of the first commit that counts, or empty: then the
	// head is it.
	Commit string
}

// Introduce judges a head without a pin. The first commit, or the head where
// none is given, must be signed by a first signer (or be a merge that adds
// nothing to what one signed), and from there on every commit by the signers of
// its first parent. A head that leaves nobody who could sign the next commit is
// refused.
//
// Errors are as with Advance; NotIntroduced where the head does not descend from
// the first commit.
func (p Policy) Introduce(ctx context.Context, repo Repository, intro Introduction, head string) (Verified, error) {
	w, err := newWalk(p, repo)
	if err != nil {
		return Verified{}, err
	}
	if intro.Signers.Empty() {
		return Verified{}, refuse(sources.NotIntroduced, head, "no key is among the first signers (trust.signers)")
	}
	v, err := w.introduce(ctx, intro, head)
	if errors.Is(err, errApart) {
		return Verified{}, refuse(sources.NotIntroduced, head, "it does not descend from the first commit %.12s (trust.commit)", intro.Commit)
	}
	if err != nil {
		return Verified{}, err
	}
	v.Introduced = true
	return v, nil
}

func (w *walk) introduce(ctx context.Context, intro Introduction, head string) (Verified, error) {
	first, err := w.commit(ctx, cmp.Or(intro.Commit, head))
	if intro.Commit != "" && errors.Is(err, fs.ErrNotExist) {
		return Verified{}, refuse(sources.NotIntroduced, head, "the first commit %.12s (trust.commit) is not in this repository", intro.Commit)
	}
	if err != nil {
		return Verified{}, err
	}
	sig, err := w.accept(ctx, first, intro.Signers)
	if err != nil {
		return Verified{}, err
	}
	v := Verified{
		Pin:    Pin{Commit: first.ID, PayloadHash: first.PayloadHash, SignedAt: sig.SignedAt},
		Signer: sig.Signer, Tree: first.Tree, Steps: 1,
	}
	if first.ID != head {
		if v, err = w.advance(ctx, v.Pin, head); err != nil {
			return Verified{}, err
		}
		v.Steps++
	}
	return v, w.checkSuccession(ctx, v.Commit)
}

// checkSuccession makes sure that somebody can sign the next commit: the first
// signers don't count any more then.
func (w *walk) checkSuccession(ctx context.Context, head string) error {
	c, err := w.commit(ctx, head)
	if err != nil {
		return err
	}
	s, err := w.authority(ctx, c, maxSteps)
	if err != nil && sources.ReasonOf(err) == "" {
		return err
	}
	if err != nil || s.Empty() {
		return refuse(sources.NotIntroduced, head, "nobody could sign the next commit: add a public key as %s/NAME.pub, in a commit signed by a first signer", signersDir)
	}
	return nil
}
