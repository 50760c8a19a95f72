package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fleetling/fleetling/discovery"
)

// Prefix is where members' branches stand.
const Prefix = "refs/heads/members/"

// MaxMembers is how many branches are read.
const MaxMembers = 2000

// Refs are the branches below Prefix of the registry repository. Commits are
// named by their ids, branches by their full names.
type Refs interface {
	// Fetch gives the commit of each branch that is listed and can be read, and
	// why that is not the listed one. It may forget commits that no branch is at,
	// those of keep aside. An error says nothing about any branch.
	Fetch(ctx context.Context, keep []string) (commits map[string]string, problems map[string]error, err error)
	// Push makes branch a commit without parents that holds exactly files, and
	// gives its id. Nothing is sent where its files are these already.
	Push(ctx context.Context, branch string, files map[string][]byte, name string, at time.Time) (commit string, err error)
	// Files hands the files of a commit to read.
	Files(ctx context.Context, commit string, read func(fs.FS) error) error
}

// Carrier is one member's side of the registry. It is safe for concurrent use.
type Carrier struct {
	member string
	refs   Refs
	now    func() time.Time

	mu       sync.Mutex
	views    map[string]view // by member
	problems map[string]error
}

var _ discovery.Carrier = (*Carrier)(nil)

// New makes the carrier of a member, a DNS label of at most 32 characters. now is
// the time that its commits bear.
func New(member string, refs Refs, now func() time.Time) (*Carrier, error) {
	if !isName(member) {
		return nil, fmt.Errorf("registry member %q: must be a DNS label of at most 32 characters", member)
	}
	return &Carrier{member: member, refs: refs, now: now, views: map[string]view{}, problems: map[string]error{}}, nil
}

// Put is discovery.Carrier's. The branch is made anew if it is not what it should
// be, whoever changed it.
func (c *Carrier) Put(ctx context.Context, own discovery.Own) error {
	files, err := filesOf(own)
	if err != nil {
		return fmt.Errorf("put %s: %w", c.member, err)
	}
	commit, err := c.refs.Push(ctx, Prefix+c.member, files, c.member, c.now())
	if err != nil {
		return fmt.Errorf("put %s: %w", c.member, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.views[c.member] = view{listed: commit, good: commit, head: headOf(c.member, own)}
	delete(c.problems, c.member)
	return nil
}

// Heads is discovery.Carrier's. It asks the server, and then Problems says whose
// branch could not be read.
func (c *Carrier) Heads(ctx context.Context) ([]discovery.Head, error) {
	commits, unread, err := c.refs.Fetch(ctx, c.keep())
	if err != nil {
		return nil, fmt.Errorf("heads: %w", err)
	}
	if n := len(commits) + len(unread); n > 2*MaxMembers {
		return nil, fmt.Errorf("heads: %d branches below %s, more than %d are not read", n, Prefix, MaxMembers)
	}
	views, problems := map[string]view{}, map[string]error{}
	for branch, problem := range unread {
		problems[strings.TrimPrefix(branch, Prefix)] = problem
	}
	for _, branch := range slices.Sorted(maps.Keys(commits)) {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("heads: %w", err)
		}
		member := strings.TrimPrefix(branch, Prefix)
		if !isName(member) {
			problems[member] = fmt.Errorf("branch %q: it is not named by a member: delete it", branch)
			continue
		}
		v, problem := c.view(ctx, member, commits[branch])
		views[member] = v
		if problem != nil {
			problems[member] = problem
		}
	}
	return c.show(views, problems)
}

// show makes what was seen the state, unless there is nothing to show for
// problems.
func (c *Carrier) show(views map[string]view, problems map[string]error) ([]discovery.Head, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.views, c.problems = views, problems
	var heads []discovery.Head
	for _, member := range slices.Sorted(maps.Keys(views)) {
		if head := views[member].head; head.Record != "" || head.Status != "" {
			heads = append(heads, head)
		}
	}
	if len(heads) == 0 && len(problems) > 0 {
		return nil, fmt.Errorf("heads: no member's branch can be read: %w", errors.Join(slices.Collect(maps.Values(problems))...))
	}
	return heads, nil
}

// Problems says, by member, why the last Heads shows an older head of it or none.
func (c *Carrier) Problems() map[string]error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.problems)
}

// Get is discovery.Carrier's. It reads what the last Heads, or our own Put, has
// brought, and asks nobody.
func (c *Carrier) Get(ctx context.Context, member string, digest discovery.Digest) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("get %.60q: %w", member, err)
	}
	c.mu.Lock()
	v, known := c.views[member]
	c.mu.Unlock()
	path, named := pathOf(v.head, digest)
	if !known || v.good == "" || !named {
		return nil, fmt.Errorf("get %.80q of %.60q: %w", digest, member, discovery.ErrNotFound)
	}
	data, err := c.read(ctx, v.good, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("get %s of %s: %w", digest, member, discovery.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s of %s: %w", digest, member, err)
	}
	if discovery.DigestOf(data) != digest {
		return nil, fmt.Errorf("get %s of %s: other bytes stand in its place: %w", digest, member, discovery.ErrNotFound)
	}
	return data, nil
}

func (c *Carrier) read(ctx context.Context, commit, path string) (data []byte, _ error) {
	err := c.refs.Files(ctx, commit, func(files fs.FS) (err error) {
		data, err = fs.ReadFile(files, path)
		return err
	})
	return data, err
}

// keep are the commits that heads are shown from.
func (c *Carrier) keep() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var commits []string
	for _, v := range c.views {
		if v.good != "" {
			commits = append(commits, v.good)
		}
	}
	slices.Sort(commits)
	return commits
}

// isName says whether a member can be named so: names come from branches, and go
// into branches and paths.
func isName(name string) bool {
	return regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`).MatchString(name)
}
