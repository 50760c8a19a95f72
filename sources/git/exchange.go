package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/fleetling/fleetling/sources"
)

const (
	// maxFailures is how many rounds of one Fetch may fail over what was asked
	// for: looking for a bad branch among 2000 takes 22.
	maxFailures = 64
	// maxRound is what one round with several branches may bring, in bytes. With
	// more there are more rounds.
	maxRound = 64 << 20
)

// exchange is one call of Refs.
type exchange struct {
	*endpoint
	refs     *Refs
	held     *held
	listed   map[string]plumbing.Hash
	problems map[string]error
	failures int
}

func (x *exchange) fetch(ctx context.Context, keep []string) error {
	asked, theirs, err := x.round(ctx, nil)
	if theirs {
		err = x.divide(ctx, asked, err)
	}
	if err != nil {
		return err
	}
	if err := x.settle(); err != nil {
		return err
	}
	return x.compact(ctx, keep)
}

// round asks once: it lists the branches, and brings those that are new, of only
// where that is not nil. theirs says that the error is about the branches asked
// for, and not about the server or us.
func (x *exchange) round(ctx context.Context, only []string) (asked []string, theirs bool, _ error) {
	w := newWire(ctx)
	defer w.close()
	asked, err := x.talk(ctx, w, only)
	if err == nil || errors.Is(err, errDamaged) {
		return asked, false, err
	}
	again, err := x.explain(ctx, w, err)
	theirs = len(asked) > 0 && (again || sources.ReasonOf(err) == sources.LimitExceeded)
	return asked, theirs, err
}

// divide finds the branches that can't be had, and brings the others.
func (x *exchange) divide(ctx context.Context, asked []string, err error) error {
	if x.failures++; x.failures > maxFailures {
		return err
	}
	if len(asked) == 1 {
		x.problems[asked[0]] = err
		if sources.ReasonOf(err) == sources.LimitExceeded {
			x.refs.refused[asked[0]] = refusal{commit: x.listed[asked[0]], err: err}
		}
		return nil
	}
	for half := range slices.Chunk(asked, (len(asked)+1)/2) {
		some, theirs, err := x.round(ctx, half)
		if theirs {
			err = x.divide(ctx, some, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *exchange) talk(ctx context.Context, w *wire, only []string) (asked []string, _ error) {
	w.allow(maxAdvertised, "delete refs there that nobody needs")
	s, err := x.connect(ctx, w)
	if err != nil {
		return nil, err
	}
	defer s.Close() // all of the answer that counts has been read and checked
	server, err := x.list(ctx, s)
	if err != nil {
		return nil, err
	}
	asked = x.wanted(only)
	if len(asked) == 0 {
		return nil, nil
	}
	limits := x.Limits
	limits.PackBytes = min(limits.PackBytes*int64(len(asked)), max(limits.PackBytes, maxRound))
	limits.Objects *= len(asked)
	w.allow(limits.PackBytes, "no branch there may hold so much")
	return asked, x.bring(ctx, &question{session: s, server: server}, asked, limits)
}

// list reads the branches below the prefix. A repository without any is an
// answer: nobody has pushed yet.
func (x *exchange) list(ctx context.Context, s session) (*capability.List, error) {
	x.listed = map[string]plumbing.Hash{}
	refs, err := s.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return capability.NewList(), nil
	}
	if err != nil {
		return nil, err
	}
	if n := len(refs.References); n > maxRefs {
		return nil, tooMuch("the repository has %d refs, more than %d are not read: delete refs there that nobody needs", n, maxRefs)
	}
	config := x.refs.config
	for name, id := range refs.References {
		if strings.HasPrefix(name, config.Prefix) && checkBranch(name) == nil && !id.IsZero() {
			x.listed[name] = id
		}
	}
	if len(x.listed) > config.Max {
		return nil, tooMuch("there are %d branches, more than %d are not read: delete those that nobody needs", len(x.listed), config.Max)
	}
	return refs.Capabilities, nil
}

// wanted are the branches to ask for, sorted.
func (x *exchange) wanted(only []string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(x.listed)) {
		id := x.listed[name]
		if x.held.heads[name] == id || x.refs.refused[name].commit == id || only != nil && !slices.Contains(only, name) {
			continue
		}
		names = append(names, name)
	}
	return names
}

// bring receives what is missing of some branches, checks that it is all there,
// and only then makes it part of what is held.
func (x *exchange) bring(ctx context.Context, ask *question, names []string, limits sources.Limits) error {
	var ids, there []plumbing.Hash
	for _, name := range names {
		id := x.listed[name]
		if p, _ := x.held.store.find(id); p != nil {
			there = append(there, id)
		} else if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(there) > 0 { // left by a branch that was something else since
		if err := checkClosure(ctx, x.held.store, nil, there...); err != nil {
			return lost(err)
		}
	}
	in, err := x.download(ctx, ask, ids, names, limits)
	if err != nil {
		return err
	}
	if err := checkClosure(ctx, x.held.store, in.pack, ids...); err != nil {
		return errors.Join(err, x.held.drop(in))
	}
	if err := x.held.take(in); err != nil {
		return err
	}
	for _, name := range names {
		x.held.heads[name] = x.listed[name]
	}
	return x.held.save()
}

// download receives a pack with ids. What stood in the branches before is said to
// be ours, and to be cut off there: git looks into the trees of what the other
// side has only where that is part of a cut-off history, and ours has no more.
// Else an orphan commit would always bring all of its files.
func (x *exchange) download(ctx context.Context, ask *question, ids []plumbing.Hash, names []string, limits sources.Limits) (incoming, error) {
	if len(ids) == 0 {
		return incoming{}, nil
	}
	var haves []plumbing.Hash
	for _, name := range names {
		if id, ok := x.held.heads[name]; ok && !slices.Contains(haves, id) {
			haves = append(haves, id)
		}
	}
	req, err := askForSeveral(ids, haves, ask.server)
	if err != nil {
		return incoming{}, err
	}
	res, err := ask.session.UploadPack(ctx, req)
	if err != nil {
		return incoming{}, fmt.Errorf("upload-pack: %w", err)
	}
	defer res.Close() // the pack's own checksum says whether all came
	return receiveThin(ctx, x.held.disk.root, packOf(req, res), limits, x.held.store)
}

func askForSeveral(ids, haves []plumbing.Hash, server *capability.List) (*packp.UploadPackRequest, error) {
	req, err := askFor(ids[0], haves, server)
	if err != nil {
		return nil, err
	}
	req.Wants = ids
	// Whether the server has thin packs can't be seen: go-git takes that off the
	// list. They are older than shallow.
	if len(haves) == 0 || !server.Supports(capability.Shallow) {
		return req, nil
	}
	req.Shallows = haves
	return req, errors.Join(req.Capabilities.Set(capability.ThinPack), req.Capabilities.Set(capability.Shallow))
}

// settle forgets branches that are not listed any more, and refusals of commits
// that no branch is at.
func (x *exchange) settle() error {
	before := len(x.held.heads)
	maps.DeleteFunc(x.held.heads, func(name string, _ plumbing.Hash) bool { return x.listed[name].IsZero() })
	maps.DeleteFunc(x.refs.refused, func(name string, r refusal) bool { return x.listed[name] != r.commit })
	for name, r := range x.refs.refused {
		x.problems[name] = r.err
	}
	if len(x.held.heads) == before {
		return nil
	}
	return x.held.save()
}

func (x *exchange) commits() map[string]string {
	commits := map[string]string{}
	for name, id := range x.held.heads {
		commits[name] = id.String()
	}
	return commits
}
