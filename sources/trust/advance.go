package trust

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/fleetling/fleetling/sources"
)

// Pin is the last verified head: what every later head has to descend from.
type Pin struct {
	// Commit is its id and PayloadHash that of Commit of the same name.
	Commit      string
	PayloadHash string
	// SignedAt is the latest signing time on the line up to it.
	SignedAt time.Time
}

// Verified is a head that was taken.
type Verified struct {
	// Pin is what to keep, before anything is applied.
	Pin
	// Signer is who vouches for the head. Its name is empty where a pin from an
	// introduction is looked at again and no tree names the key; all of it is,
	// where nobody proves who wrapped a twin.
	Signer Signer
	// Tree is the id of the head's tree.
	Tree string
	// Steps is how many commits were verified.
	Steps int
	// Introduced says that there was no pin before.
	Introduced bool
	// Twin says that the pin was not found under its own id but as another
	// commit of the same content: somebody between the signers and this
	// cluster made a second one.
	Twin bool
}

// Advance judges a new head against the pin. A head is taken whole or not at
// all: every commit on its first-parent line from the pin on must be signed by a
// key in signers/ of its first parent, or be a merge that adds nothing. Where
// the head is the pin itself, no more is asked than whether its key has been
// revoked since.
//
// A refusal is a *sources.Error that names the commit; any other error means
// that the repository could not be read, and says nothing of the head.
func (p Policy) Advance(ctx context.Context, repo Repository, pin Pin, head string) (Verified, error) {
	w, err := newWalk(p, repo)
	if err != nil {
		return Verified{}, err
	}
	if head == pin.Commit {
		return w.stand(ctx, pin)
	}
	v, err := w.advance(ctx, pin, head)
	if errors.Is(err, errApart) {
		return Verified{}, refuse(sources.HistoryRewound, head, "it does not descend from the pin %.12s", pin.Commit)
	}
	return v, err
}

// errApart says that a head does not descend from where the walk begins.
var errApart = errors.New("not a descendant")

func (w *walk) advance(ctx context.Context, pin Pin, head string) (Verified, error) {
	ids, from, found, err := w.line(ctx, head, func(c Commit) (bool, error) { return w.isPin(ctx, pin, c) })
	if err == nil && !found {
		ids, from, found, err = w.lineFromMerge(ctx, pin, head)
	}
	if err != nil {
		return Verified{}, err
	}
	if !found {
		return Verified{}, w.apart(ctx, head)
	}
	v := Verified{Pin: pin, Steps: len(ids), Twin: from.ID != pin.Commit}
	last, signedAt := from, pin.SignedAt
	if len(ids) == 0 {
		v.Signer, err = w.signerOf(ctx, pin, from)
	} else {
		w.NotBefore = pin.SignedAt
		last, v.Signer, err = w.follow(ctx, from, ids)
		signedAt = w.NotBefore
	}
	if err != nil {
		return Verified{}, err
	}
	v.Tree = last.Tree
	if last.PayloadHash != pin.PayloadHash {
		v.Pin = Pin{Commit: last.ID, PayloadHash: last.PayloadHash, SignedAt: signedAt}
	}
	return v, nil
}

// isPin says whether c is the pin: by its id, by its payload (whoever serves the
// repository can wrap a signature anew), or as a merge that adds nothing to it
// (whoever serves the branch can leave the merge out).
func (w *walk) isPin(ctx context.Context, pin Pin, c Commit) (bool, error) {
	if c.ID == pin.Commit || c.PayloadHash == pin.PayloadHash {
		return true, nil
	}
	if len(c.Parents) != 2 || c.Parents[1] != pin.Commit {
		return false, nil
	}
	return w.addsNothing(ctx, c)
}

// lineFromMerge is line for a pin that is itself a merge that adds nothing. Such
// a merge needs no key, so that whoever serves the branch can make as many as
// he likes, each with an id and a payload of its own: the one with the same
// parents and the same tree is as good.
func (w *walk) lineFromMerge(ctx context.Context, pin Pin, head string) ([]string, Commit, bool, error) {
	pinned, err := w.commit(ctx, pin.Commit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Commit{}, false, nil
	}
	if err != nil {
		return nil, Commit{}, false, err
	}
	if ok, err := w.addsNothing(ctx, pinned); err != nil || !ok {
		return nil, Commit{}, false, err
	}
	return w.line(ctx, head, func(c Commit) (bool, error) {
		return c.Tree == pinned.Tree && slices.Equal(c.Parents, pinned.Parents), nil
	})
}

// apart is the verdict on a head that does not descend from the pin. What is
// wrong with the head itself comes first, as everywhere; where nobody is named
// who could sign it, its key says nothing.
func (w *walk) apart(ctx context.Context, head string) error {
	c, err := w.commit(ctx, head)
	if err != nil {
		return err
	}
	authority, err := w.parentAuthority(ctx, c, maxSteps)
	if err != nil {
		return err
	}
	_, err = w.accept(ctx, c, authority)
	if err != nil && (!authority.Empty() || sources.ReasonOf(err) != sources.UnknownKey) {
		return err
	}
	return errApart
}

// stand looks at a pin that is still the head. It was verified when it was
// pinned; only a revocation since then can tell more.
func (w *walk) stand(ctx context.Context, pin Pin) (Verified, error) {
	c, err := w.commit(ctx, pin.Commit)
	if err != nil {
		return Verified{}, err
	}
	signer, err := w.signerOf(ctx, pin, c)
	if err != nil {
		return Verified{}, err
	}
	return Verified{Pin: pin, Signer: signer, Tree: c.Tree}, nil
}

// signerOf gives who vouched for the pinned commit c, or the verdict RevokedKey
// where that key has been revoked since.
func (w *walk) signerOf(ctx context.Context, pin Pin, c Commit) (Signer, error) {
	authority, err := w.parentAuthority(ctx, c, maxLookback)
	if err != nil && sources.ReasonOf(err) == "" {
		return Signer{}, err
	}
	// What is before an introduction was never verified, and may be anything: it
	// names nobody, then.
	sig, err := w.accept(ctx, c, authority)
	if err == nil {
		return sig.Signer, nil
	}
	if sources.ReasonOf(err) == "" || sources.ReasonOf(err) == sources.RevokedKey {
		return Signer{}, err
	}
	// Not by its parent's signers as they count now: if it is without the
	// revocations, these are why.
	before := &walk{Policy: Policy{Now: w.Now}, repo: w.repo}
	if sig, err := before.accept(ctx, c, authority); err == nil {
		return Signer{}, refuse(sources.RevokedKey, c.ID, "it stands on a signature by %s: key %s is revoked", sig.Signer, sig.key)
	}
	if c.ID != pin.Commit {
		// A twin: nothing of its signature was ever proven.
		return Signer{}, nil
	}
	return w.claimedSigner(ctx, c)
}

// claimedSigner takes the signature's word for who made it. It was proven when
// the commit was pinned; the keys it was proven by were the first signers of an
// introduction, which are not at hand any more.
func (w *walk) claimedSigner(ctx context.Context, c Commit) (Signer, error) {
	if !c.claims() {
		return Signer{}, nil
	}
	signer := Signer{Fingerprint: c.claim.key()}
	s, err := w.signersOf(ctx, c)
	if err != nil {
		return Signer{}, err
	}
	if k := s.find(c.claim.key()); k != nil {
		signer = k.Signer
	}
	revoked, err := w.revokes(signer.Fingerprint, c.claim.key())
	if err != nil {
		return Signer{}, err
	}
	if revoked {
		return Signer{}, refuse(sources.RevokedKey, c.ID, "signed by %s: the key is revoked", signer)
	}
	return signer, nil
}
