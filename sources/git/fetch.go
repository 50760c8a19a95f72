package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/fleetling/fleetling/sources"
)

const (
	maxAdvertised = 4 << 20
	maxRefs       = 10_000
	// maxPacks is how many fetches are kept side by side before a fresh clone
	// makes one pack of them.
	maxPacks = 50
)

// Request says what to fetch and where to keep it. It is plain data.
type Request struct {
	Remote
	// Dir is the folder of the bare repository. Fetch owns it, and the names
	// Dir.new and Dir.old beside it. It may be absent.
	Dir string
	// Have is the id of the newest commit that the caller has verified, "" for
	// none.
	Have string
}

// Result says what Fetch found. It is plain data.
type Result struct {
	// Head is the id of the branch's commit. It and all it needs is in Dir.
	Head string
	// Changed says that Head is not the request's Have.
	Changed bool
	// Fresh says that the repository was cloned anew.
	Fresh bool
	// Received is the number of bytes that came over the network.
	Received int64
	// Objects is the number of git objects in the pack that came, 0 without one.
	Objects int
}

// Fetcher is Fetch, here or in another process.
type Fetcher func(ctx context.Context, r Request) (Result, error)

var _ Fetcher = Fetch

// Fetch asks the remote for its branch, and brings what is missing of it into
// Dir. Two calls for one Dir must not overlap. Errors are *sources.Error; after
// an error Dir holds what it held before, or nothing.
func Fetch(ctx context.Context, r Request) (Result, error) {
	e, err := r.open()
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	f := &fetch{endpoint: e, dir: r.Dir, have: r.Have}
	if err := f.check(); err != nil {
		return Result{}, err
	}
	result, again, err := f.try(ctx, false)
	if err != nil && again {
		received := result.Received
		result, _, err = f.try(ctx, true)
		result.Received += received
	}
	if err != nil {
		return Result{}, err
	}
	return result, nil
}

// fetch is one call of Fetch.
type fetch struct {
	*endpoint
	dir, have string
}

func (f *fetch) check() error {
	if !filepath.IsAbs(f.dir) {
		return f.fail(sources.Unreachable, nil, "the folder for the repository must be an absolute path")
	}
	if f.have == "" {
		return nil
	}
	if _, err := parseID(f.have); err != nil {
		return f.fail(sources.Unreachable, err, "the commit that was verified last is not a commit id")
	}
	return nil
}

// try asks once. Where that failed, again says that a fresh clone may go better:
// the branch moved in between, the server lost what we have, or what we have is
// damaged.
func (f *fetch) try(ctx context.Context, fresh bool) (_ Result, again bool, _ error) {
	w := newWire(ctx)
	defer w.close()
	result, err := f.talk(ctx, w, fresh)
	if err != nil {
		again, err = f.explain(ctx, w, err)
	}
	result.Received = w.total()
	return result, again, err
}

func (f *fetch) talk(ctx context.Context, w *wire, fresh bool) (Result, error) {
	w.allow(maxAdvertised, "delete refs there that nobody needs")
	s, err := f.connect(ctx, w)
	if err != nil {
		return Result{}, err
	}
	defer s.Close() // all of the answer that counts has been read and checked
	head, server, err := f.resolve(ctx, s)
	if err != nil {
		return Result{}, err
	}
	w.allow(f.Limits.PackBytes, "raise limits.packBytes, or make the repository smaller")
	result := Result{Head: head.String(), Changed: head.String() != f.have}
	ask := &question{session: s, server: server, head: head}
	if err := removeLeftovers(f.dir); err != nil {
		return Result{}, err
	}
	if local, err := openDisk(f.dir); err == nil {
		defer local.close()
		if !fresh && local.head == head {
			return result, nil
		}
		if !fresh && len(local.packs) < maxPacks {
			result.Objects, err = f.bring(ctx, ask, local)
			return result, err
		}
	}
	result.Fresh = true
	result.Objects, err = f.clone(ctx, ask)
	return result, err
}

func (e *endpoint) connect(ctx context.Context, w *wire) (session, error) {
	if e.url.Scheme == "ssh" {
		return e.connectSSH(ctx, w, uploadPack)
	}
	return e.connectHTTP(w)
}

// question is what is asked of the server: its commit head.
type question struct {
	session session
	server  *capability.List
	head    plumbing.Hash
}

// resolve gives the commit of exactly our branch. HEAD, tags and other branches
// don't count, whatever they are named.
func (f *fetch) resolve(ctx context.Context, s session) (plumbing.Hash, *capability.List, error) {
	refs, err := s.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return plumbing.ZeroHash, nil, f.fail(sources.BranchNotFound, nil, "the repository is empty: push the branch; it is asked again")
	}
	if err != nil {
		return plumbing.ZeroHash, nil, err
	}
	if n := len(refs.References); n > maxRefs {
		return plumbing.ZeroHash, nil, tooMuch("the repository has %d refs, more than %d are not read: delete refs there that nobody needs", n, maxRefs)
	}
	head, ok := refs.References[f.Branch]
	if !ok || head.IsZero() {
		return plumbing.ZeroHash, nil, f.fail(sources.BranchNotFound, nil, "the repository has no such branch: push it, or mend the branch's name where it is configured; it is asked again")
	}
	return head, refs.Capabilities, nil
}

// clone brings the whole branch into a new folder, which takes the place of the
// old one when it is complete.
func (f *fetch) clone(ctx context.Context, ask *question) (int, error) {
	next := f.dir + ".new"
	d, err := createDisk(next)
	if err != nil {
		return 0, err
	}
	defer d.close()
	objects, err := f.bring(ctx, ask, d)
	if err != nil {
		return 0, errors.Join(err, os.RemoveAll(next))
	}
	return objects, replaceDisk(f.dir, next)
}

// bring receives what d lacks of head, checks that nothing is missing, and only
// then makes it part of d.
func (f *fetch) bring(ctx context.Context, ask *question, d *disk) (int, error) {
	if err := d.sweep(); err != nil {
		return 0, err
	}
	s, err := d.open(f.Limits.ObjectBytes)
	if err != nil {
		return 0, err
	}
	defer s.close() // only read from
	var in incoming
	if p, _ := s.find(ask.head); p == nil {
		if in, err = f.download(ctx, ask, d, s); err != nil {
			return 0, err
		}
	}
	if err := checkClosure(ctx, s, in.pack, ask.head); err != nil {
		return 0, err
	}
	if in.pack != nil {
		if err := in.install(d); err != nil {
			return 0, err
		}
	}
	return in.objects, d.setHead(ask.head)
}

// download receives a pack and adds it to s.
func (f *fetch) download(ctx context.Context, ask *question, d *disk, s *store) (incoming, error) {
	req, err := askFor(ask.head, f.haves(d, s), ask.server)
	if err != nil {
		return incoming{}, err
	}
	res, err := ask.session.UploadPack(ctx, req)
	if err != nil {
		return incoming{}, fmt.Errorf("upload-pack: %w", err)
	}
	defer res.Close() // the pack's own checksum says whether all came
	return receive(ctx, d.root, packOf(req, res), f.Limits, s)
}

// haves are the commits that need not be sent: the last one fetched, and the
// last one verified.
func (f *fetch) haves(d *disk, s *store) []plumbing.Hash {
	ids := []plumbing.Hash{d.head}
	if have, err := parseID(f.have); err == nil && have != d.head {
		ids = append(ids, have)
	}
	return slices.DeleteFunc(ids, func(id plumbing.Hash) bool {
		p, _ := s.find(id)
		return p == nil
	})
}
