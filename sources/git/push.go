package git

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/hash"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/fleetling/fleetling/sources"
)

// maxReport bounds what a server says of one branch, in bytes.
const maxReport = 64 << 10

// pusher is what Push needs of a transport.
type pusher interface {
	AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error)
	ReceivePack(context.Context, *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error)
	Close() error
}

func (e *endpoint) connectToPush(ctx context.Context, w *wire) (pusher, error) {
	if e.url.Scheme == "ssh" {
		return e.connectSSH(ctx, w, receivePack)
	}
	client, err := e.httpClient(w, receivePack)
	if err != nil {
		return nil, err
	}
	return client.NewReceivePackSession(e.transportEndpoint(), nil)
}

// push tries twice where the branch moved in between.
func (x *exchange) push(ctx context.Context, branch string, made *snapshot) (plumbing.Hash, error) {
	before := plumbing.ZeroHash
	for try := 0; ; try++ {
		old, id, err := x.pushOnce(ctx, branch, made)
		moved := errors.Is(err, errRefused) && try == 0 && old != before
		if err == nil || !moved {
			return id, x.refusedPush(err)
		}
		before = old
	}
}

// errRefused is that the server took the pack and not the branch.
var errRefused = errors.New("the server refused the branch")

func (x *exchange) refusedPush(err error) error {
	if errors.Is(err, errRefused) {
		return x.fail(sources.AuthenticationFailed, nil, "the server refused the branch: let these credentials create it and push to it with force, protect no branches below %s*, and look at the server's hooks and quota", x.refs.config.Prefix)
	}
	return err
}

func (x *exchange) pushOnce(ctx context.Context, branch string, made *snapshot) (old, id plumbing.Hash, _ error) {
	w := newWire(ctx)
	defer w.close()
	old, id, err := x.offer(ctx, w, branch, made)
	if err != nil && !errors.Is(err, errRefused) {
		_, err = x.explain(ctx, w, err)
	}
	return old, id, err
}

func (x *exchange) offer(ctx context.Context, w *wire, branch string, made *snapshot) (old, id plumbing.Hash, _ error) {
	w.allow(maxAdvertised, "delete refs there that nobody needs")
	s, err := x.connectToPush(ctx, w)
	if err != nil {
		return old, id, err
	}
	defer s.Close() // the report has been read
	refs, err := s.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		refs, err = packp.NewAdvRefs(), nil
	}
	if err != nil {
		return old, id, err
	}
	old = refs.References[branch]
	x.learn(ctx, branch, old)
	there, err := x.there(ctx, old)
	if err != nil {
		return old, id, err
	}
	if len(there) > 0 && x.treeOf(old) == made.tree {
		return old, old, nil
	}
	w.allow(maxReport, "its answer to a push is too long")
	pack, err := made.pack(there)
	if err != nil {
		return old, id, err
	}
	if err := x.send(ctx, s, &packp.Command{Name: plumbing.ReferenceName(branch), Old: old, New: made.commit}, pack); err != nil {
		return old, id, err
	}
	return old, made.commit, x.remember(ctx, branch, made.commit, pack)
}

// learn brings the commit that the branch is at, so that only what is new has to
// be sent. What can't be had does not matter: then all is sent.
func (x *exchange) learn(ctx context.Context, branch string, commit plumbing.Hash) {
	if p, _ := x.held.store.find(commit); commit.IsZero() || p != nil {
		return
	}
	_, _, _ = x.round(ctx, []string{branch})
}

// there are the objects that the server needs for commit. Without a whole commit
// on our side, none.
func (x *exchange) there(ctx context.Context, commit plumbing.Hash) (map[plumbing.Hash]plumbing.ObjectType, error) {
	if p, _ := x.held.store.find(commit); p == nil {
		return nil, nil
	}
	objects, err := reach(ctx, x.held.store, nil, commit)
	if err != nil && ctx.Err() == nil {
		return nil, nil // damaged here, and found again by Fetch
	}
	return objects, err
}

func (x *exchange) treeOf(commit plumbing.Hash) plumbing.Hash {
	raw, err := x.held.store.object(plumbing.CommitObject, commit)
	if err != nil {
		return plumbing.ZeroHash
	}
	tree, _, err := parseCommit(raw)
	if err != nil {
		return plumbing.ZeroHash
	}
	return tree
}

// pack holds all objects but those that are there.
func (s *snapshot) pack(there map[plumbing.Hash]plumbing.ObjectType) ([]byte, error) {
	missing := maps.Clone(s.objects)
	maps.DeleteFunc(missing, func(id plumbing.Hash, _ object) bool { _, has := there[id]; return has })
	var buffer bytes.Buffer
	w := &packWriter{to: &buffer}
	if err := w.header(len(missing)); err != nil {
		return nil, err
	}
	for _, id := range slices.SortedFunc(maps.Keys(missing), compareIDs) {
		if _, err := w.add(missing[id]); err != nil {
			return nil, err
		}
	}
	sum := hash.New(crypto.SHA1)
	_, _ = sum.Write(buffer.Bytes()) // never fails
	return sum.Sum(buffer.Bytes()), nil
}

func (x *exchange) send(ctx context.Context, s pusher, command *packp.Command, pack []byte) error {
	req := packp.NewReferenceUpdateRequest()
	if err := req.Capabilities.Set(capability.ReportStatus); err != nil {
		return err
	}
	req.Commands = []*packp.Command{command}
	req.Packfile = io.NopCloser(bytes.NewReader(pack))
	report, err := s.ReceivePack(ctx, req)
	if report == nil {
		return errors.Join(err, errGarbled)
	}
	if report.UnpackStatus == "" { // it was not read to its end
		return errors.Join(err, errGarbled)
	}
	if report.Error() != nil || len(report.CommandStatuses) != 1 {
		return errRefused // what the server wrote is not passed on
	}
	return err
}

// remember makes what was pushed part of what is held: the next Fetch has nothing
// to bring of it.
func (x *exchange) remember(ctx context.Context, branch string, commit plumbing.Hash, pack []byte) error {
	limits := x.Limits
	limits.Objects = max(limits.Objects, len(pack)) // it is our own
	in, err := receive(ctx, x.held.disk.root, bytes.NewReader(pack), limits, x.held.store)
	if err != nil {
		return err
	}
	if err := checkClosure(ctx, x.held.store, in.pack, commit); err != nil {
		return errors.Join(err, x.held.drop(in))
	}
	if err := x.held.take(in); err != nil {
		return err
	}
	x.held.heads[branch] = commit
	return x.held.save()
}
