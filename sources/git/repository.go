package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetling/fleetling/sources"
)

// Repository reads what Fetch left on disk. It holds its files open: a Fetch
// that replaces the folder does not disturb it. It is safe for concurrent use.
//
// Where it finds damage it says so in the folder, and the next Fetch clones.
type Repository struct {
	limits sources.Limits

	mu     sync.Mutex
	root   *os.Root
	store  *store
	closed bool
}

// Open opens the repository in dir. The caller closes it.
func Open(dir string, limits sources.Limits) (*Repository, error) {
	d, err := openDisk(dir)
	if err != nil {
		// Not wrapped: "not there" here is not an answer about the remote branch.
		return nil, fmt.Errorf("open repository: %s", err.Error())
	}
	s, err := d.open(limits.ObjectBytes)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open repository: %w", err), markDamaged(d.root), d.close())
	}
	return &Repository{limits: limits, root: d.root, store: s}, nil
}

// Close closes the files. Reading afterwards is an error.
func (r *Repository) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	return errors.Join(r.store.close(), r.root.Close())
}

// Commit gives the bytes of a commit object as they are stored, git's own header
// "commit SIZE\0" aside. They were compared with id, 40 lower-case hexadecimal
// digits. A commit that is not there is fs.ErrNotExist, and nothing else is.
func (r *Repository) Commit(ctx context.Context, id string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	hash, err := parseID(id)
	if err != nil {
		return nil, err
	}
	raw, err := r.object(plumbing.CommitObject, hash)
	if errors.Is(err, errMissing) {
		return nil, fmt.Errorf("commit %s is not in this repository: %w", id, fs.ErrNotExist)
	}
	return raw, err
}

// Tree gives the files below the tree id, read when they are asked for and for
// as long as ctx lasts. It also implements fs.ReadDirFS, fs.ReadFileFS,
// fs.StatFS and fs.ReadLinkFS.
//
// Links are listed as links and followed when opened, where they stay inside. A
// submodule, a Git LFS pointer, a link that leads out or nowhere, a name with a
// control character or the like: each is an error that names the path, and
// fs.ErrInvalid; a folder with such a name can't be listed. Only what is not there
// is fs.ErrNotExist. Files, TreeBytes, ObjectBytes and Depth bound what one such
// file system gives out, LimitExceeded beyond. fs.Glob must not be used on it: it
// takes an error for a folder without matches.
func (r *Repository) Tree(ctx context.Context, id string) (fs.FS, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	hash, err := parseID(id)
	if err != nil {
		return nil, err
	}
	t := newTree(r, hash, ctx.Err)
	if _, err := t.folder(hash); err != nil {
		return nil, fmt.Errorf("tree %s: %w", id, err)
	}
	return t, nil
}

func (r *Repository) object(kind plumbing.ObjectType, id plumbing.Hash) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, fs.ErrClosed
	}
	content, err := r.store.object(kind, id)
	if kind != plumbing.CommitObject {
		err = lost(err)
	}
	return bytes.Clone(content), r.judge(err) // the store keeps its own
}

func (r *Repository) size(id plumbing.Hash) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, fs.ErrClosed
	}
	size, err := r.store.size(id)
	return size, r.judge(lost(err))
}

// lost makes damage of an object that is not there although a tree or a commit
// names it: Fetch had seen it. A commit that is not there may just be unknown.
func lost(err error) error {
	if errors.Is(err, errMissing) {
		return fmt.Errorf("%w (%w)", errDamaged, err)
	}
	return err
}

// judge leaves the mark where err is damage.
func (r *Repository) judge(err error) error {
	if errors.Is(err, errDamaged) {
		return errors.Join(err, markDamaged(r.root))
	}
	return limitReached(err)
}

// markDamaged does not wrap its error, which may say "not there".
func markDamaged(root *os.Root) error {
	if err := root.WriteFile(damageMark, nil, 0o600); err != nil {
		return fmt.Errorf("mark the repository as damaged: %s", err.Error())
	}
	return nil
}
