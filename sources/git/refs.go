package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetling/fleetling/sources"
)

// RefsConfig says which branches Refs is about and where it keeps them. It is
// plain data.
type RefsConfig struct {
	// Remote is the repository. Its Branch is not used. Timeout bounds one call.
	// Limits bound objects, and the PackBytes and Objects that several branches
	// bring at once: so much for each, together.
	Remote Remote
	// Prefix is where the branches stand: refs/heads/NAME/.
	Prefix string
	// Dir is the folder of the bare repository, an absolute path. Refs owns it,
	// and the names Dir.new and Dir.old beside it. It may be absent.
	Dir string
	// Max is how many branches there may be below Prefix.
	Max int
}

// Refs are the branches below a prefix of a remote repository: all are read, any
// may be replaced. It is safe for concurrent use; calls that talk to the server
// come one after the other.
type Refs struct {
	config RefsConfig

	mu      sync.Mutex
	refused map[string]refusal // by branch
}

// refusal is a commit that is too big: it is not asked for again.
type refusal struct {
	commit plumbing.Hash
	err    error
}

// NewRefs checks the configuration and touches nothing. Errors are *sources.Error.
func NewRefs(config RefsConfig) (*Refs, error) {
	r := &Refs{config: config, refused: map[string]refusal{}}
	branches, slashed := strings.CutSuffix(config.Prefix, "/")
	if err := checkBranch(branches); err != nil || !slashed {
		return nil, &sources.Error{Reason: sources.BranchNotFound, Err: fmt.Errorf("branches %q: write refs/heads/NAME/", config.Prefix)}
	}
	if !filepath.IsAbs(config.Dir) {
		return nil, &sources.Error{Reason: sources.Unreachable, Err: fmt.Errorf("folder %q for the repository: must be an absolute path", config.Dir)}
	}
	if config.Max <= 0 {
		return nil, &sources.Error{Reason: sources.LimitExceeded, Err: errors.New("the number of branches allowed: must be more than zero")}
	}
	r.config.Remote.Branch = branches // what is checked of a Remote
	return r, nil
}

// Fetch asks for all branches and brings what is missing of them. It gives, by
// full ref name, the commit of each that is listed and on disk; and why it is not
// the listed one: a branch that can't be had keeps the commit that it had before.
// What no branch and no commit of keep needs any more may be removed from disk.
// With nothing new it is one request. Errors are *sources.Error and say nothing
// about any branch.
func (r *Refs) Fetch(ctx context.Context, keep []string) (commits map[string]string, problems map[string]error, _ error) {
	err := r.call(ctx, "fetch "+r.config.Prefix+"*", "read", func(ctx context.Context, x *exchange) error {
		err := x.fetch(ctx, keep)
		if errors.Is(err, errDamaged) {
			if err = x.renew(); err == nil {
				err = x.fetch(ctx, keep)
			}
		}
		commits, problems = x.commits(), x.problems
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return commits, problems, nil
}

// Push makes branch, a full ref name below the prefix, a commit without parents
// that holds exactly files, by slash-separated path: whatever was there before is
// replaced. Objects that the branch's last commit has are not sent again, and
// nothing is sent where its tree is the same: then the commit stays as it is. Name
// and time of author and committer are name and at, in seconds, UTC. Push gives
// the commit's id. Errors are *sources.Error.
func (r *Refs) Push(ctx context.Context, branch string, files map[string][]byte, name string, at time.Time) (string, error) {
	if err := r.checkPush(branch, name); err != nil {
		return "", err
	}
	made, err := newSnapshot(files, name, at, r.config.Remote.Limits)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", branch, err)
	}
	var id plumbing.Hash
	err = r.call(ctx, "push "+branch, "write", func(ctx context.Context, x *exchange) (err error) {
		id, err = x.push(ctx, branch, made)
		return err
	})
	if err != nil {
		return "", err
	}
	return id.String(), nil
}

// Files hands the files of a commit that Fetch or Push gave to read. They are
// what Repository.Tree gives, and can't be read once read has returned. A commit
// that is not on disk is fs.ErrNotExist.
func (r *Refs) Files(ctx context.Context, commit string, read func(fs.FS) error) error {
	repository, err := r.openRepository()
	if err != nil {
		return err
	}
	defer repository.Close() // only read from
	raw, err := repository.Commit(ctx, commit)
	if err != nil {
		return err
	}
	tree, _, err := parseCommit(raw)
	if err != nil {
		return fmt.Errorf("commit %s: %w", commit, err)
	}
	files, err := repository.Tree(ctx, tree.String())
	if err != nil {
		return fmt.Errorf("commit %s: %w", commit, err)
	}
	return read(files)
}

// openRepository waits for a Fetch that may be replacing the folder.
func (r *Refs) openRepository() (*Repository, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	limits := r.config.Remote.Limits
	d, err := openPacks(r.config.Dir)
	if err != nil {
		return nil, fmt.Errorf("open repository: %s", err.Error()) // "not there" is no answer about a commit
	}
	s, err := d.open(limits.ObjectBytes)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open repository: %w", err), markDamaged(d.root), d.close())
	}
	return &Repository{limits: limits, root: d.root, store: s}, nil
}

func (r *Refs) checkPush(branch, name string) error {
	rest, below := strings.CutPrefix(branch, r.config.Prefix)
	if err := checkBranch(branch); err != nil || !below || rest == "" {
		return &sources.Error{Reason: sources.BranchNotFound, Err: fmt.Errorf("push %q: it is not a branch below %s", branch, r.config.Prefix)}
	}
	if strings.ContainsAny(name, "<>\n\x00") || strings.TrimSpace(name) == "" {
		return &sources.Error{Reason: sources.Unreachable, Err: fmt.Errorf("push %s: %q can't be the name of an author", branch, name)}
	}
	return nil
}

// call waits for the one before.
func (r *Refs) call(ctx context.Context, doing, may string, do func(context.Context, *exchange) error) error {
	e, err := r.config.Remote.openTo(doing, may)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	x := &exchange{endpoint: e, refs: r, problems: map[string]error{}}
	if err := x.openOrCreate(); err != nil {
		return e.told(err)
	}
	err = do(ctx, x)
	_ = x.close() // what was written has been synced
	if err != nil {
		return e.told(err)
	}
	return nil
}

// told gives an error that is not yet one of ours its sentence: what is left is
// our own file system.
func (e *endpoint) told(err error) error {
	if _, known := errors.AsType[*sources.Error](err); known {
		return err
	}
	if limit, ok := errors.AsType[*limitError](err); ok {
		return e.fail(sources.LimitExceeded, nil, "%s", limit.text)
	}
	return e.fail(sources.Unreachable, err, "the repository on disk can't be used: its folder and the one above need space, and rights for this process")
}

func (x *exchange) openOrCreate() error {
	err := removeLeftovers(x.refs.config.Dir)
	if err != nil {
		return err
	}
	if x.held, err = openHeld(x.refs.config.Dir, x.Limits.ObjectBytes); err == nil {
		return nil
	}
	x.held, err = createHeld(x.refs.config.Dir, x.Limits.ObjectBytes)
	return err
}

// renew replaces a damaged repository by an empty one.
func (x *exchange) renew() error {
	err := x.close()
	x.held = nil
	if err != nil {
		return err
	}
	x.held, err = createHeld(x.refs.config.Dir, x.Limits.ObjectBytes)
	return err
}

func (x *exchange) close() error {
	if x.held == nil {
		return nil
	}
	return x.held.close()
}
