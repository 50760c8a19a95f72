package desired

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/fleet"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/render"
	"github.com/fleetling/fleetling/sources/trust"
)

// Pipeline is configured once. One goroutine at a time may use it.
type Pipeline struct {
	// Fetcher brings the branch to disk.
	Fetcher git.Fetcher
	// Remote is what is followed, DataDir where the clone is kept.
	Remote  git.Remote
	DataDir string
	// Signers is the folder of the first signers' keys, Commit the pinned first
	// commit or "", Revoked the fingerprints that count no more.
	Signers, Commit string
	Revoked         []string
	// Renderer is the one of this process.
	Renderer *render.Renderer
}

// Wanted is what a cluster should be, as of a revision.
type Wanted struct {
	// Fleet is there as soon as it could be read, also beside an error.
	Fleet     *fleet.Fleet
	Selection fleet.Selection
	AddOns    []AddOn
}

// AddOn is a selected add-on and what it renders to, or why it does not.
type AddOn struct {
	fleet.AddOn
	Objects  []render.Object
	Digest   string
	Warnings []*sources.Error
	Err      error
}

func (p *Pipeline) dir() string { return filepath.Join(p.DataDir, "fleet.git") }

// Fetch brings the branch's head to disk. have is the commit that is verified
// already, or "".
func (p *Pipeline) Fetch(ctx context.Context, have string) (git.Result, error) {
	return p.Fetcher(ctx, git.Request{Remote: p.Remote, Dir: p.dir(), Have: have})
}

// Verify judges a head that is on disk: against the pin, or, without one, by the
// first signers.
func (p *Pipeline) Verify(ctx context.Context, pin *trust.Pin, head string, now time.Time) (trust.Verified, error) {
	repo, err := git.Open(p.dir(), p.Remote.Limits)
	if err != nil {
		return trust.Verified{}, err
	}
	defer func() { _ = repo.Close() }()
	policy := trust.Policy{Now: now, Revoked: p.Revoked}
	if pin != nil {
		policy.NotBefore = pin.SignedAt
		return policy.Advance(ctx, repo, *pin, head)
	}
	signers, problems, err := trust.ReadSigners(os.DirFS(p.Signers), ".")
	if err != nil {
		return trust.Verified{}, fmt.Errorf("first signers in %s: %w", p.Signers, err)
	}
	// A key that can't be read among the first signers is a fault of the
	// configuration: going on without it would hide it.
	if len(problems) > 0 {
		return trust.Verified{}, fmt.Errorf("first signers in %s: %w", p.Signers, problems[0])
	}
	return policy.Introduce(ctx, repo, trust.Introduction{Signers: signers, Commit: p.Commit}, head)
}

// Want works out what a cluster should be at a verified revision.
func (p *Pipeline) Want(ctx context.Context, v trust.Verified, id fleet.Identity, listed bool) (Wanted, error) {
	repo, err := git.Open(p.dir(), p.Remote.Limits)
	if err != nil {
		return Wanted{}, err
	}
	defer func() { _ = repo.Close() }()
	tree, err := repo.Tree(ctx, v.Tree)
	if err != nil {
		return Wanted{}, err
	}
	return FromTree(tree, id, listed, p.Renderer)
}

// FromTree works out what a cluster should be by a tree. listed says that an
// earlier revision had an entry for this cluster.
func FromTree(tree fs.FS, id fleet.Identity, listed bool, renderer *render.Renderer) (Wanted, error) {
	f, err := fleet.Read(tree)
	if err != nil {
		return Wanted{}, err
	}
	selection, err := f.Select(tree, id, listed)
	if err != nil {
		return Wanted{Fleet: &f}, err
	}
	wanted := Wanted{Fleet: &f, Selection: selection}
	for _, addOn := range selection.AddOns {
		result, err := renderer.Render(tree, render.Request{
			AddOn: addOn.Name, Path: addOn.Path, Components: addOn.Components, Substitute: addOn.Substitute,
		})
		wanted.AddOns = append(wanted.AddOns, AddOn{
			AddOn: addOn, Objects: result.Objects, Digest: result.Digest, Warnings: result.Warnings, Err: err,
		})
	}
	return wanted, nil
}

// Fleet reads the fleet file of a verified revision.
func (p *Pipeline) Fleet(ctx context.Context, v trust.Verified) (fleet.Fleet, error) {
	repo, err := git.Open(p.dir(), p.Remote.Limits)
	if err != nil {
		return fleet.Fleet{}, err
	}
	defer func() { _ = repo.Close() }()
	tree, err := repo.Tree(ctx, v.Tree)
	if err != nil {
		return fleet.Fleet{}, err
	}
	return fleet.Read(tree)
}

// Line gives the commits of the first-parent line from a head on, at most most of
// them, each with its distance from the head.
func (p *Pipeline) Line(ctx context.Context, head string, most int) (map[string]int, error) {
	repo, err := git.Open(p.dir(), p.Remote.Limits)
	if err != nil {
		return nil, err
	}
	defer func() { _ = repo.Close() }()
	line := map[string]int{}
	for commit := head; commit != "" && len(line) < most; {
		line[commit] = len(line)
		raw, err := repo.Commit(ctx, commit)
		if err != nil {
			return nil, err
		}
		commit = firstParent(raw)
	}
	return line, nil
}

// firstParent is "" for a commit without parents.
func firstParent(raw []byte) string {
	for line := range strings.Lines(string(raw)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if key == "parent" {
			return value
		}
		if key != "tree" {
			break
		}
	}
	return ""
}
