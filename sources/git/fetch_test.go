package git_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/gittest"
)

func TestFetchClonesThenBringsOnlyWhatIsNew(t *testing.T) {
	for name, serve := range serving() {
		t.Run(name, func(t *testing.T) {
			repo := seeded(t)
			grow(t, repo, "history", 60)
			r := serve(t, repo)
			first := fetch(t, r)
			assert.Equal(t, repo.Head(), first.Head)
			assert.True(t, first.Changed)
			assert.True(t, first.Fresh)
			assert.Greater(t, first.Objects, 180)
			whole(t, r.Dir, repo.Head())

			repo.Write("addons/a/cm.yaml", "kind: Secret\n")
			second := repo.Commit("second", nil)
			r.Have = first.Head
			got := fetch(t, r)
			assert.Equal(t, git.Result{Head: second, Changed: true, Objects: 5, Received: got.Received}, got) // commit, 3 trees, blob
			assert.Less(t, got.Received, first.Received/2)
			whole(t, r.Dir, second)
		})
	}
}

func TestFetchTransfersNothingForABranchThatStandsStill(t *testing.T) {
	repo := seeded(t)
	s := gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{})
	r := request(t, s.URL)
	fetch(t, r)
	s.Forget()
	got := fetch(t, r)
	assert.True(t, got.Changed, "nothing is verified yet")
	r.Have = repo.Head()
	got = fetch(t, r)
	assert.Equal(t, git.Result{Head: repo.Head(), Received: got.Received}, got)
	assert.Equal(t, []gittest.Request{
		{Method: http.MethodGet, Path: "/fleet.git/info/refs?service=git-upload-pack"},
		{Method: http.MethodGet, Path: "/fleet.git/info/refs?service=git-upload-pack"},
	}, s.Requests())
}

func TestFetchClonesWhereTheVerifiedCommitIsNotOnDisk(t *testing.T) {
	repo := seeded(t)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	r.Have = repo.Head()
	got := fetch(t, r)
	assert.Equal(t, git.Result{Head: repo.Head(), Fresh: true, Objects: 6, Received: got.Received}, got)
	whole(t, r.Dir, repo.Head())
}

func TestB24TheBranchAppearsInAnEmptyRepository(t *testing.T) {
	for name, serve := range serving() {
		t.Run(name, func(t *testing.T) {
			repo := gittest.NewRepo(t)
			r := serve(t, repo)
			refused(t, r, sources.BranchNotFound, "the repository is empty", main)
			repo.Write("a", "a\n")
			head := repo.Commit("first", nil)
			assert.Equal(t, head, fetch(t, r).Head)
		})
	}
}

func TestB24AForcePushIsFetchedAndLeavesWhatWasVerified(t *testing.T) {
	for name, serve := range serving() {
		t.Run(name, func(t *testing.T) {
			repo := seeded(t)
			older := repo.Head()
			repo.Write("a", "a\n")
			verified := repo.Commit("second", nil)
			r := serve(t, repo)
			fetch(t, r)
			r.Have = verified

			repo.Git("reset", "--quiet", "--hard", older)
			got := fetch(t, r)
			assert.Equal(t, git.Result{Head: older, Changed: true, Received: got.Received}, got, "it is on disk already")

			repo.Git("checkout", "--quiet", "--orphan", "other")
			repo.Write("b", "b\n")
			unrelated := repo.Commit("unrelated", nil)
			repo.Git("branch", "--force", "main", "other")
			repo.Git("reflog", "expire", "--expire=now", "--all")
			repo.Git("gc", "--quiet", "--prune=now") // the server has lost what we have
			assert.Equal(t, unrelated, fetch(t, r).Head)

			disk := open(t, r.Dir)
			for _, id := range []string{older, verified, unrelated} {
				_, err := disk.Commit(t.Context(), id)
				assert.NoError(t, err)
			}
		})
	}
}

func TestB24AMissingBranchLeavesWhatIsOnDisk(t *testing.T) {
	for name, serve := range serving() {
		t.Run(name, func(t *testing.T) {
			repo := seeded(t)
			head := repo.Head()
			r := serve(t, repo)
			fetch(t, r)
			repo.Git("branch", "--move", "main", "trunk")
			refused(t, r, sources.BranchNotFound, "no such branch", main)
			whole(t, r.Dir, head)
			repo.Git("branch", "main", "trunk")
			assert.Equal(t, head, fetch(t, r).Head)
		})
	}
}

func TestB24OnlyTheBranchOfTheFullNameCounts(t *testing.T) {
	repo := seeded(t)
	head := repo.Head()
	repo.Git("checkout", "--quiet", "-b", "other") // HEAD points elsewhere
	repo.Write("b", "b\n")
	other := repo.Commit("other", nil)
	repo.Git("tag", "main")
	repo.Git("tag", "--annotate", "--message", "x", "refs/heads/main")
	repo.Git("branch", "refs/heads/main")
	repo.Git("update-ref", "refs/remotes/origin/main", other)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	assert.Equal(t, head, fetch(t, r).Head)
	repo.Git("tag", "--force", "main", other)
	assert.Equal(t, head, fetch(t, r).Head)
	repo.Git("update-ref", "-d", main)
	refused(t, r, sources.BranchNotFound)
}

func TestB24TheSameTreeInANewCommitBringsOneObject(t *testing.T) {
	repo := seeded(t)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	r.Have = fetch(t, r).Head
	head := repo.Commit("nothing changed", nil)
	got := fetch(t, r)
	assert.Equal(t, git.Result{Head: head, Changed: true, Objects: 1, Received: got.Received}, got)
}

func TestB24AShallowServerIsRefused(t *testing.T) {
	for name, serve := range serving() {
		t.Run(name, func(t *testing.T) {
			full := seeded(t)
			full.Commit("second", nil)
			shallow := gittest.NewRepo(t)
			shallow.Git("fetch", "--quiet", "--depth=1", "file://"+full.Dir, "main:main", "--update-head-ok")
			r := serve(t, shallow)
			refused(t, r, sources.Unreachable, "shallow", "git fsck")
			assert.NoDirExists(t, r.Dir)
		})
	}
}

func TestB24AServerThatLacksAnObjectIsRefused(t *testing.T) {
	repo := seeded(t)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	head := fetch(t, r).Head
	repo.Write("addons/a/new.yaml", "x\n")
	repo.Commit("second", nil)
	blob := repo.Git("rev-parse", "HEAD:addons/a/new.yaml")
	require.NoError(t, os.Remove(repo.Dir+"/.git/objects/"+blob[:2]+"/"+blob[2:]))
	refused(t, r, sources.Unreachable)
	whole(t, r.Dir, head)
}

func TestB24TheBranchMovesBetweenAskingAndFetching(t *testing.T) {
	for name, move := range map[string]func(*gittest.Repo){
		"forward":             func(repo *gittest.Repo) { repo.Commit("moved", nil) },
		"to another history":  rewrite,
		"away and back again": func(repo *gittest.Repo) { repo.Git("update-ref", "-d", main); repo.Commit("moved", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			repo := seeded(t)
			s := gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{})
			r := request(t, s.URL)
			r.Have = fetch(t, r).Head
			repo.Commit("announced", nil)
			s.SetBefore(func(req *http.Request) {
				if req.Method == http.MethodPost {
					s.SetBefore(nil)
					move(repo)
				}
			})
			first := fetch(t, r)
			got := fetch(t, r)
			assert.Equal(t, repo.Head(), got.Head)
			whole(t, r.Dir, repo.Head())
			disk := open(t, r.Dir)
			_, err := disk.Commit(t.Context(), first.Head)
			assert.NoError(t, err)
		})
	}
}

// rewrite makes main another history and throws the first away.
func rewrite(repo *gittest.Repo) {
	repo.Git("checkout", "--quiet", "--orphan", "next")
	repo.Commit("rewritten", nil)
	repo.Git("branch", "--force", "main", "next")
	repo.Git("checkout", "--quiet", "main")
	repo.Git("branch", "--delete", "--force", "next")
	repo.Git("reflog", "expire", "--expire=now", "--all")
	repo.Git("gc", "--quiet", "--prune=now")
}

func TestB24TwoHundredCommitsEndAtTheNewest(t *testing.T) {
	repo := seeded(t)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	r.Have = fetch(t, r).Head
	newest := grow(t, repo, "more", 200)
	got := fetch(t, r)
	assert.Equal(t, newest, got.Head)
	assert.False(t, got.Fresh)
	disk := open(t, r.Dir)
	for _, id := range splitLines(repo.Git("rev-list", "main")) {
		_, err := disk.Commit(t.Context(), id)
		assert.NoError(t, err)
	}
}

func TestCommitGivesTheStoredBytes(t *testing.T) {
	repo := seeded(t)
	key := gittest.NewSSHKey(t, "alice", "ed25519")
	repo.Commit("signed, with trailing space \n\n\nand newlines", key)
	// Headers that an encoder would put elsewhere, or drop.
	odd := "tree " + repo.Git("rev-parse", "HEAD^{tree}") + "\nparent " + repo.Head() +
		"\nauthor  A  <a@example.com> 1700000000 +0530\ncommitter C <c@example.com> 1700000000 -0000\nx-extra  two  spaces \nencoding latin1\n\nm\xe9ssage\r\n"
	id := repo.GitInput(odd, "hash-object", "-t", "commit", "-w", "--stdin", "--literally")
	repo.Git("reset", "--quiet", "--hard", id)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	fetch(t, r)
	disk := open(t, r.Dir)
	got, err := disk.Commit(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, odd, string(got))
	parent, err := disk.Commit(t.Context(), repo.Git("rev-parse", "HEAD^"))
	require.NoError(t, err)
	assert.Equal(t, repo.Git("cat-file", "commit", "HEAD^"), string(parent[:len(parent)-1]))
	assert.Contains(t, string(parent), "gpgsig -----BEGIN SSH SIGNATURE-----")
}

func TestCommitOfAnotherKindOrUnknownIsAnError(t *testing.T) {
	repo := seeded(t)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	fetch(t, r)
	disk := open(t, r.Dir)
	for name, test := range map[string]struct {
		id     string
		absent bool
	}{
		"a tree":        {repo.Git("rev-parse", "HEAD^{tree}"), false},
		"unknown":       {"0123456789012345678901234567890123456789", true},
		"too short":     {repo.Head()[:10], false},
		"upper case":    {"ABCDEF6789012345678901234567890123456789", false},
		"an expression": {"HEAD", false},
		"nothing":       {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := disk.Commit(t.Context(), test.id)
			require.Error(t, err)
			assert.Nil(t, got)
			assert.Equal(t, test.absent, errors.Is(err, fs.ErrNotExist), "%v", err)
		})
	}
	_, err := disk.Tree(t.Context(), repo.Head())
	assert.ErrorContains(t, err, "is a commit where a tree is expected")
	r.Have = repo.Head()
	assert.False(t, fetch(t, r).Fresh, "asking for what was never there is no damage")
}

func TestReadingEndsWithItsContext(t *testing.T) {
	repo := seeded(t)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	fetch(t, r)
	disk := open(t, r.Dir)
	ctx, cancel := context.WithCancel(t.Context())
	tree, err := disk.Tree(ctx, repo.Git("rev-parse", "HEAD^{tree}"))
	require.NoError(t, err)
	cancel()
	_, err = fs.ReadFile(tree, "fleetling.yaml")
	assert.ErrorIs(t, err, context.Canceled)
	_, err = disk.Commit(ctx, repo.Head())
	assert.ErrorIs(t, err, context.Canceled)
	_, err = disk.Tree(ctx, repo.Head())
	assert.ErrorIs(t, err, context.Canceled)
}

func TestARepositoryOfSHA256IsRefused(t *testing.T) {
	for name, serve := range serving() {
		t.Run(name, func(t *testing.T) {
			repo := gittest.NewRepo(t)
			repo.Remove(".git")
			repo.Git("init", "--quiet", "--initial-branch=main", "--object-format=sha256")
			repo.Write("a", "a\n")
			repo.Commit("first", nil)
			refused(t, serve(t, repo), sources.Unreachable)
		})
	}
}

func TestFetchOfACancelledContextSaysSo(t *testing.T) {
	repo := seeded(t)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := git.Fetch(ctx, r)
	because(t, err, sources.Unreachable)
	assert.ErrorIs(t, err, context.Canceled)
}

func TestFetchRefusesARequestThatIsNone(t *testing.T) {
	r := request(t, "https://127.0.0.1:1/fleet.git")
	r.Dir = "relative"
	refused(t, r, sources.Unreachable, "absolute path")
	r = request(t, "https://127.0.0.1:1/fleet.git")
	r.Have = "HEAD"
	refused(t, r, sources.Unreachable, "not a commit id")
}

func TestFetchKeepsItsFolderToItself(t *testing.T) {
	repo := seeded(t)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	fetch(t, r)
	err := fs.WalkDir(os.DirFS(r.Dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = fmt.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	assert.NoError(t, err)
}
