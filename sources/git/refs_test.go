package git_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/gittest"
)

const (
	members = "refs/heads/members/"
	alice   = members + "alice"
	bob     = members + "bob"
)

func at(second int64) time.Time { return time.Unix(1_700_000_000+second, 0) }

// branches opens the members' branches of what r asks for.
func branches(tb testing.TB, r git.Request) *git.Refs {
	tb.Helper()
	r.Branch = "" // it is not used
	return configured(tb, git.RefsConfig{Remote: r.Remote, Prefix: members, Dir: filepath.Join(tb.TempDir(), "registry"), Max: 2000})
}

func configured(tb testing.TB, config git.RefsConfig) *git.Refs {
	tb.Helper()
	refs, err := git.NewRefs(config)
	require.NoError(tb, err)
	return refs
}

// pushable serves an empty repository that everybody may write, over http.
func pushable(tb testing.TB) (*gittest.Repo, *gittest.HTTPServer) {
	tb.Helper()
	repo := gittest.NewRepo(tb)
	return repo, gittest.ServeHTTP(tb, repo.Dir, gittest.HTTPOptions{Push: true})
}

func push(tb testing.TB, refs *git.Refs, branch string, files map[string][]byte, second int64) string {
	tb.Helper()
	commit, err := refs.Push(tb.Context(), branch, files, "alice", at(second))
	require.NoError(tb, err)
	return commit
}

func fetchAll(tb testing.TB, refs *git.Refs, keep ...string) map[string]string {
	tb.Helper()
	commits, problems, err := refs.Fetch(tb.Context(), keep)
	require.NoError(tb, err)
	require.Empty(tb, problems)
	return commits
}

// files reads all of a commit.
func files(tb testing.TB, refs *git.Refs, commit string) map[string][]byte {
	tb.Helper()
	all := map[string][]byte{}
	err := refs.Files(tb.Context(), commit, func(files fs.FS) error {
		return fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			all[path], err = fs.ReadFile(files, path)
			return err
		})
	})
	require.NoError(tb, err)
	return all
}

// noise is content that does not compress.
func noise(seed uint64, size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}).Read(data)
	return data
}

// parts are a record and n parts of 3 KB.
func parts(n int) map[string][]byte {
	all := map[string][]byte{"record": []byte("a record"), "status": []byte("a status")}
	for i := range n {
		all[fmt.Sprintf("parts/%03d", i)] = noise(uint64(i), 3000)
	}
	return all
}

// counter is a TCP relay that counts.
type counter struct {
	url            string
	toServer, back atomic.Int64
}

func counting(tb testing.TB, target string) *counter {
	tb.Helper()
	u, err := url.Parse(target)
	require.NoError(tb, err)
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	var running sync.WaitGroup
	c := &counter{url: u.Scheme + "://" + listener.Addr().String() + u.Path}
	running.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { c.relay(near, u.Host) })
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return c
}

func (c *counter) relay(near net.Conn, address string) {
	defer near.Close()
	far, err := new(net.Dialer).DialContext(context.Background(), "tcp", address)
	if err != nil {
		return
	}
	defer far.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(near, io.TeeReader(far, count(&c.back)))
		_ = near.Close()
	})
	_, _ = io.Copy(far, io.TeeReader(near, count(&c.toServer)))
	_ = far.Close()
	back.Wait()
}

func count(into *atomic.Int64) io.Writer { return tally{into} }

type tally struct{ into *atomic.Int64 }

func (t tally) Write(p []byte) (int, error) {
	t.into.Add(int64(len(p)))
	return len(p), nil
}

func (c *counter) take() (sent, received int64) { return c.toServer.Swap(0), c.back.Swap(0) }

func TestRefsGiveBackWhatWasPushed(t *testing.T) {
	for name, serve := range map[string]func(t *testing.T, repo *gittest.Repo) git.Request{
		"http": func(t *testing.T, repo *gittest.Repo) git.Request {
			t.Helper()
			return request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{Push: true}).URL)
		},
		"https and a password": func(t *testing.T, repo *gittest.Repo) git.Request {
			t.Helper()
			s := gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{Push: true, TLS: true, Username: "u", Password: "p"})
			r := request(t, s.URL)
			r.Credentials = credentials(t, map[string]string{"ca.crt": string(s.CA()), "username": "u", "password": "p"})
			return r
		},
		"https and a token": func(t *testing.T, repo *gittest.Repo) git.Request {
			t.Helper()
			s := gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{Push: true, TLS: true, BearerToken: "token"})
			r := request(t, s.URL)
			r.Credentials = credentials(t, map[string]string{"ca.crt": string(s.CA()), "bearerToken": "token"})
			return r
		},
		"ssh": func(t *testing.T, repo *gittest.Repo) git.Request {
			t.Helper()
			return sshRequest(t, gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{Push: true}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			repo := gittest.NewRepo(t)
			r := serve(t, repo)
			writer, reader := branches(t, r), branches(t, r)
			assert.Empty(t, fetchAll(t, reader), "an empty repository has no branches, and that is no error")

			want := map[string][]byte{"record": []byte("r1"), "parts/b": {0, 1, 2}, "parts/a": []byte("a"), "parts.txt": {}}
			first := push(t, writer, alice, want, 1)
			assert.Equal(t, map[string]string{alice: first}, fetchAll(t, reader))
			assert.Empty(t, cmp.Diff(want, files(t, reader, first)))
			assert.Equal(t, "alice <noreply@fleetling.dev> 1700000001 +0000", repo.Git("log", "-1", "--format=%an <%ae> %at %ad", "--date=format:%z", alice))

			want["record"] = []byte("r2")
			delete(want, "parts/a")
			second := push(t, writer, alice, want, 2)
			assert.Equal(t, map[string]string{alice: second}, fetchAll(t, reader))
			assert.Empty(t, cmp.Diff(want, files(t, reader, second)))
			assert.Equal(t, "1", repo.Git("rev-list", "--count", alice), "each push replaces all before")
			repo.Git("fsck", "--strict")
		})
	}
}

func TestRefsBelowThePrefixOnly(t *testing.T) {
	repo, server := pushable(t)
	repo.Write("a", "a")
	head := repo.Commit("first", nil)
	repo.Git("tag", "v1")
	repo.Git("branch", "other/alice")
	repo.Git("branch", "members/alice")
	assert.Equal(t, map[string]string{alice: head}, fetchAll(t, branches(t, request(t, server.URL))))
}

func TestRefsFetchOfNothingNewIsOneRequest(t *testing.T) {
	_, server := pushable(t)
	writer, reader := branches(t, request(t, server.URL)), branches(t, request(t, server.URL))
	push(t, writer, alice, parts(3), 1)
	fetchAll(t, reader)
	server.Forget()
	commits := fetchAll(t, reader)
	assert.Len(t, commits, 1)
	require.Len(t, server.Requests(), 1)
	assert.Equal(t, "/fleet.git/info/refs?service=git-upload-pack", server.Requests()[0].Path)
}

func TestRefsPushOfTheSameSendsNothing(t *testing.T) {
	_, server := pushable(t)
	dir := filepath.Join(t.TempDir(), "registry")
	config := git.RefsConfig{Remote: request(t, server.URL).Remote, Prefix: members, Dir: dir, Max: 10}
	first := push(t, configured(t, config), alice, parts(3), 1)
	for name, forget := range map[string]func(){
		"while it runs":                     func() {},
		"after the folder on disk was lost": func() { require.NoError(t, os.RemoveAll(dir)) },
	} {
		t.Run(name, func(t *testing.T) {
			forget()
			server.Forget()
			assert.Equal(t, first, push(t, configured(t, config), alice, parts(3), 99))
			for _, r := range server.Requests() {
				assert.NotEqual(t, "/fleet.git/git-receive-pack", r.Path)
			}
		})
	}
}

func TestRefsMoveOnlyWhatChanged(t *testing.T) {
	for name, changed := range map[string][]byte{"a part": noise(4711, 3000), "a part with a small change": append(noise(1, 3000), "more"...)} {
		t.Run(name, func(t *testing.T) {
			repo, server := pushable(t)
			up, down := counting(t, server.URL), counting(t, server.URL)
			writer, reader := branches(t, request(t, up.url)), branches(t, request(t, down.url))
			all := parts(50)
			push(t, writer, alice, all, 1)
			fetchAll(t, reader)
			whole, _ := up.take()
			_, wholeBack := down.take()
			require.Greater(t, min(whole, wholeBack), int64(150_000))

			all["parts/001"] = changed
			commit := push(t, writer, alice, all, 2)
			fetchAll(t, reader)
			sent, _ := up.take()
			_, received := down.take()
			assert.Less(t, sent, int64(8_000), "a part, a folder of 50 names, a commit")
			assert.Less(t, received, int64(8_000))
			assert.Empty(t, cmp.Diff(all, files(t, reader, commit)))
			repo.Git("fsck", "--strict")
		})
	}
}

func TestRefsOnDiskAreARepositoryThatGitCanRead(t *testing.T) {
	_, server := pushable(t)
	dir := filepath.Join(t.TempDir(), "registry")
	refs := configured(t, git.RefsConfig{Remote: request(t, server.URL).Remote, Prefix: members, Dir: dir, Max: 10})
	other := branches(t, request(t, server.URL))
	push(t, refs, bob, parts(2), 1)
	record := bytes.Repeat([]byte("an endpoint that stays\n"), 500)
	push(t, other, alice, map[string][]byte{"record": record}, 1)
	fetchAll(t, refs)
	// Small next to the whole: it comes as a delta on what is there.
	commit := push(t, other, alice, map[string][]byte{"record": append(record, "one more\n"...)}, 2)
	fetchAll(t, refs)
	out, err := exec.CommandContext(t.Context(), "git", "--git-dir="+dir, "fsck", "--full", "--strict").CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.CommandContext(t.Context(), "git", "--git-dir="+dir, "rev-parse", alice).Output()
	require.NoError(t, err)
	assert.Equal(t, commit, strings.TrimSpace(string(out)))
}

func TestRefsForgetABranchThatIsGone(t *testing.T) {
	repo, server := pushable(t)
	refs := branches(t, request(t, server.URL))
	push(t, refs, alice, parts(1), 1)
	commit := push(t, refs, bob, parts(2), 1)
	repo.Git("update-ref", "-d", alice)
	assert.Equal(t, map[string]string{bob: commit}, fetchAll(t, refs))
	assert.Equal(t, map[string]string{bob: commit}, fetchAll(t, refs))
}

func TestRefsThatCanNotBeHadConcernNoOther(t *testing.T) {
	const lost = "a file that the server loses"
	for name, spoil := range map[string]struct {
		do     func(repo *gittest.Repo)
		reason sources.Reason
		again  bool // it is asked for again without having changed
	}{
		"a file that is too big": {do: func(repo *gittest.Repo) {
			repo.Write("record", strings.Repeat("x", 200_000))
		}, reason: sources.LimitExceeded},
		"more than all that is asked for may hold": {do: func(repo *gittest.Repo) {
			for i := range 30 {
				repo.Write(fmt.Sprintf("parts/%d", i), string(noise(uint64(i), 90_000)))
			}
		}, reason: sources.LimitExceeded},
		"more objects than all may have": {do: func(repo *gittest.Repo) {
			for i := range 100 {
				repo.Write(fmt.Sprintf("parts/%d", i), fmt.Sprint(i))
			}
		}, reason: sources.LimitExceeded},
		"a file that is lost on the server": {do: func(repo *gittest.Repo) {
			repo.Write("record", lost)
		}, reason: sources.Unreachable, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			repo, server := pushable(t)
			r := request(t, server.URL)
			r.Limits.PackBytes, r.Limits.ObjectBytes, r.Limits.Objects = 150_000, 100_000, 20
			writer, reader := branches(t, r), branches(t, r)
			good := push(t, writer, alice, parts(1), 1)
			fetchAll(t, reader)

			spoil.do(repo)
			repo.Commit("bad", nil)
			repo.Git("update-ref", alice, "HEAD")
			lose(t, repo, lost)
			want := map[string]string{alice: good}
			for i := range 3 {
				name := fmt.Sprintf("%sm%d", members, i)
				want[name] = push(t, writer, name, map[string][]byte{"record": {byte(i)}}, 1)
			}
			commits, problems, err := reader.Fetch(t.Context(), nil)
			require.NoError(t, err)
			assert.Empty(t, cmp.Diff(want, commits), "the branch stays at its last good commit, all others come")
			assert.Equal(t, []string{alice}, slices.Collect(maps.Keys(problems)))
			because(t, problems[alice], spoil.reason)

			server.Forget()
			_, problems, err = reader.Fetch(t.Context(), nil)
			require.NoError(t, err)
			assert.Contains(t, problems, alice, "the problem is told as long as it lasts")
			asked := slices.ContainsFunc(server.Requests(), func(r gittest.Request) bool { return r.Method == http.MethodPost })
			assert.Equal(t, spoil.again, asked)

			want[alice] = push(t, writer, alice, parts(2), 3)
			assert.Empty(t, cmp.Diff(want, fetchAll(t, reader)))
		})
	}
}

// lose removes the object of a file from the server.
func lose(t *testing.T, repo *gittest.Repo, content string) {
	t.Helper()
	id := repo.GitInput(content, "hash-object", "--stdin")
	err := os.Remove(filepath.Join(repo.Dir, ".git", "objects", id[:2], id[2:]))
	if err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
}

func TestRefsAreBounded(t *testing.T) {
	_, server := pushable(t)
	r := request(t, server.URL)
	writer := branches(t, r)
	for i := range 3 {
		push(t, writer, fmt.Sprintf("%sm%d", members, i), parts(0), 1)
	}
	few := configured(t, git.RefsConfig{Remote: r.Remote, Prefix: members, Dir: filepath.Join(t.TempDir(), "few"), Max: 2})
	_, _, err := few.Fetch(t.Context(), nil)
	because(t, err, sources.LimitExceeded, "3 branches", "refs/heads/members/*")
}

func TestRefsOnDiskDoNotGrowForEver(t *testing.T) {
	repo, server := pushable(t)
	dir := filepath.Join(t.TempDir(), "registry")
	reader := configured(t, git.RefsConfig{Remote: request(t, server.URL).Remote, Prefix: members, Dir: dir, Max: 10})
	writer := branches(t, request(t, server.URL))
	kept := push(t, writer, bob, map[string][]byte{"record": []byte("kept")}, 0)
	gone := push(t, writer, alice, parts(0), 0)
	fetchAll(t, reader)
	push(t, writer, bob, map[string][]byte{"record": []byte("newer")}, 1)
	var last string
	for i := range 51 {
		repo.GitInput(fmt.Sprintf("commit %s\ncommitter C <c@example.com> 1 +0000\ndata 0\nM 100644 inline record\ndata 2\n%02d\n", alice, i), "fast-import", "--quiet", "--force")
		last = fetchAll(t, reader, kept, "no commit id", strings.Repeat("a", 40))[alice]
	}
	packs, err := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
	require.NoError(t, err)
	assert.Less(t, len(packs), 50)
	assert.Equal(t, map[string][]byte{"record": []byte("50")}, files(t, reader, last))
	assert.Equal(t, map[string][]byte{"record": []byte("kept")}, files(t, reader, kept))
	assert.ErrorIs(t, reader.Files(t.Context(), gone, func(fs.FS) error { return nil }), fs.ErrNotExist)
	out, err := exec.CommandContext(t.Context(), "git", "--git-dir="+dir, "fsck", "--full").CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.NoDirExists(t, dir+".old")
	assert.NoDirExists(t, dir+".new")
}

func TestRefsMendWhatIsDamagedOnDisk(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string){
		"a pack cut off": func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.Truncate(onlyPack(t, dir), 40))
		},
		"a pack that lies": func(t *testing.T, dir string) {
			t.Helper()
			path := onlyPack(t, dir)
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			for i := 12; i < len(data)-20; i++ {
				data[i] ^= 0xff
			}
			require.NoError(t, os.Chmod(path, 0o600))
			require.NoError(t, os.WriteFile(path, data, 0o600))
		},
		"a list of branches that is none": func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "packed-refs"), []byte("nonsense"), 0o600))
		},
		"a file in the folder's place": func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.WriteFile(dir, []byte("x"), 0o600))
		},
		"leftovers of a killed process": func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "objects/pack/incoming.pack"), []byte("PACK"), 0o600))
			require.NoError(t, os.MkdirAll(dir+".new/objects", 0o700))
			require.NoError(t, os.Mkdir(dir+".old", 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, server := pushable(t)
			dir := filepath.Join(t.TempDir(), "registry")
			reader := configured(t, git.RefsConfig{Remote: request(t, server.URL).Remote, Prefix: members, Dir: dir, Max: 10})
			writer := branches(t, request(t, server.URL))
			all := parts(3)
			commit := push(t, writer, alice, all, 1)
			fetchAll(t, reader)
			damage(t, dir)
			err := reader.Files(t.Context(), commit, func(files fs.FS) error {
				_, err := fs.ReadFile(files, "record")
				return err
			})
			assert.NotErrorIs(t, err, fs.ErrNotExist, "damage is not an answer")

			all["parts/new"] = []byte("new")
			commit = push(t, writer, alice, all, 2)
			assert.Equal(t, map[string]string{alice: commit}, fetchAll(t, reader))
			assert.Empty(t, cmp.Diff(all, files(t, reader, commit)))
			all["parts/newer"] = []byte("newer")
			commit = push(t, reader, alice, all, 3)
			assert.Empty(t, cmp.Diff(all, files(t, reader, commit)))
		})
	}
}

func onlyPack(t *testing.T, dir string) string {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
	require.NoError(t, err)
	require.Len(t, packs, 1)
	return packs[0]
}

func TestRefsPushIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		options gittest.HTTPOptions
		prepare func(t *testing.T, repo *gittest.Repo, s *gittest.HTTPServer)
		reason  sources.Reason
		words   string
	}{
		"by a server that nobody may write": {
			reason: sources.AuthenticationFailed, words: "may write this repository",
		},
		"by a server that wants credentials": {
			options: gittest.HTTPOptions{Push: true, Username: "u", Password: canary},
			reason:  sources.AuthenticationFailed, words: "asks for credentials",
		},
		"by a hook": {
			options: gittest.HTTPOptions{Push: true},
			prepare: func(t *testing.T, repo *gittest.Repo, _ *gittest.HTTPServer) {
				t.Helper()
				hook := filepath.Join(repo.Dir, ".git/hooks/update")
				require.NoError(t, os.MkdirAll(filepath.Dir(hook), 0o700))
				require.NoError(t, os.WriteFile(hook, []byte("#!/bin/sh\necho "+canary+" >&2\nexit 1\n"), 0o700))
			},
			reason: sources.AuthenticationFailed, words: "refused the branch",
		},
		"by a server that answers with something else": {
			options: gittest.HTTPOptions{Push: true},
			prepare: func(_ *testing.T, _ *gittest.Repo, s *gittest.HTTPServer) {
				s.SetBackend(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, canary) }))
			},
			reason: sources.Unreachable, words: "not git's smart http protocol",
		},
		"by a server that is down": {
			options: gittest.HTTPOptions{Push: true},
			prepare: func(_ *testing.T, _ *gittest.Repo, s *gittest.HTTPServer) { s.SetStatus(http.StatusBadGateway) },
			reason:  sources.Unreachable, words: "answered 502",
		},
		"by us, where it redirects to another host": {
			options: gittest.HTTPOptions{Push: true},
			prepare: func(_ *testing.T, _ *gittest.Repo, s *gittest.HTTPServer) {
				s.SetRedirect(func(r *http.Request) string { return "http://127.0.0.2:1" + r.URL.RequestURI() })
			},
			reason: sources.RedirectRefused, words: "127.0.0.2",
		},
		"by us, where it redirects the pack itself": {
			options: gittest.HTTPOptions{Push: true},
			prepare: func(_ *testing.T, _ *gittest.Repo, s *gittest.HTTPServer) {
				s.SetRedirect(func(r *http.Request) string {
					if r.Method == http.MethodPost {
						return "/elsewhere.git/git-receive-pack"
					}
					return ""
				})
			},
			reason: sources.RedirectRefused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			repo := gittest.NewRepo(t)
			s := gittest.ServeHTTP(t, repo.Dir, test.options)
			if test.prepare != nil {
				test.prepare(t, repo, s)
			}
			_, err := branches(t, request(t, s.URL)).Push(t.Context(), alice, parts(1), "alice", at(1))
			because(t, err, test.reason, "push refs/heads/members/alice", test.words)
			assert.NotContains(t, err.Error(), canary)
			assert.Empty(t, repo.Git("for-each-ref"))
		})
	}
}

func TestRefsPushOverSSHIsRefusedWithoutTheProgram(t *testing.T) {
	repo := gittest.NewRepo(t)
	_, err := branches(t, sshRequest(t, gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{}))).Push(t.Context(), alice, parts(1), "alice", at(1))
	because(t, err, sources.Unreachable, "push refs/heads/members/alice")
}

func TestRefsPushWinsOverOneInBetween(t *testing.T) {
	repo, server := pushable(t)
	refs, other := branches(t, request(t, server.URL)), branches(t, request(t, server.URL))
	push(t, refs, alice, parts(1), 1)
	var done atomic.Bool
	server.SetBefore(func(r *http.Request) {
		if r.Method == http.MethodPost && !done.Swap(true) {
			push(t, other, alice, parts(2), 2)
		}
	})
	commit := push(t, refs, alice, parts(3), 3)
	assert.Equal(t, commit, repo.Git("rev-parse", alice))
}

func TestRefsPushGoesOnWithoutTheLastCommit(t *testing.T) {
	repo, server := pushable(t)
	repo.Write("record", strings.Repeat("x", 200_000))
	repo.Commit("too big for us to look at", nil)
	repo.Git("update-ref", alice, "HEAD")
	r := request(t, server.URL)
	r.Limits.ObjectBytes = 100_000
	refs := branches(t, r)
	commit := push(t, refs, alice, parts(1), 1)
	assert.Equal(t, map[string]string{alice: commit}, fetchAll(t, refs))
}

func TestRefsPushRefusesWhatItCanNotWrite(t *testing.T) {
	_, server := pushable(t)
	r := request(t, server.URL)
	r.Limits.ObjectBytes = 1000
	refs := branches(t, r)
	for name, test := range map[string]struct {
		branch, author string
		files          map[string][]byte
		reason         sources.Reason
		words          string
	}{
		"a branch elsewhere":        {branch: "refs/heads/main", reason: sources.BranchNotFound, words: "not a branch below"},
		"the prefix":                {branch: members, reason: sources.BranchNotFound},
		"a name that git refuses":   {branch: members + "a..b", reason: sources.BranchNotFound},
		"an author of two lines":    {author: "a\nparent 1", reason: sources.Unreachable, words: "author"},
		"no author":                 {author: " ", reason: sources.Unreachable, words: "author"},
		"a file that is too big":    {files: map[string][]byte{"record": make([]byte, 1001)}, reason: sources.LimitExceeded, words: "record: has 1001 bytes"},
		"a path out of the tree":    {files: map[string][]byte{"../record": nil}, reason: sources.PathNotFound, words: "../record"},
		"a path into git itself":    {files: map[string][]byte{".git/config": nil}, reason: sources.PathNotFound},
		"a file that is a folder":   {files: map[string][]byte{"a": nil, "a/b": nil}, reason: sources.PathNotFound, words: "a/b"},
		"a file without a name":     {files: map[string][]byte{"": nil}, reason: sources.PathNotFound},
		"a folder without contents": {files: map[string][]byte{"a/": nil}, reason: sources.PathNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			branch, author := test.branch, test.author
			if branch == "" {
				branch = alice
			}
			if author == "" {
				author = "alice"
			}
			_, err := refs.Push(t.Context(), branch, test.files, author, at(1))
			because(t, err, test.reason, test.words)
		})
	}
	assert.Empty(t, server.Requests())
}

func TestRefsFetchFailsAsAWhole(t *testing.T) {
	_, server := pushable(t)
	refs := branches(t, request(t, server.URL))
	commit := push(t, refs, alice, parts(1), 1)
	server.SetStatus(http.StatusServiceUnavailable)
	commits, problems, err := refs.Fetch(t.Context(), nil)
	because(t, err, sources.Unreachable, "fetch refs/heads/members/*", "503")
	assert.Nil(t, commits, "an error is never empty, and never half")
	assert.Nil(t, problems)
	assert.NotEmpty(t, files(t, refs, commit), "what is on disk stays readable")
}

func TestG14RefsReturnWhenTheServerStalls(t *testing.T) {
	for _, stall := range []gittest.Stall{gittest.StallBanner, gittest.StallChannel, gittest.StallExec, gittest.StallRefs} {
		t.Run(string(stall), func(t *testing.T) {
			repo := gittest.NewRepo(t)
			r := sshRequest(t, gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{Push: true, Stall: stall}))
			r.Timeout = 200 * time.Millisecond
			refs := branches(t, r)
			_, err := refs.Push(t.Context(), alice, parts(1), "alice", at(1))
			because(t, err, sources.Unreachable, "no complete answer within 200ms")
			_, _, err = refs.Fetch(t.Context(), nil)
			because(t, err, sources.Unreachable, "no complete answer within 200ms")
		})
	}
}

func TestRefsConfigIsChecked(t *testing.T) {
	good := git.RefsConfig{Remote: git.Remote{URL: "https://h/p"}, Prefix: members, Dir: "/d", Max: 1}
	for name, test := range map[string]struct {
		change func(*git.RefsConfig)
		reason sources.Reason
	}{
		"as it should be":         {func(*git.RefsConfig) {}, ""},
		"a prefix without slash":  {func(c *git.RefsConfig) { c.Prefix = "refs/heads/members" }, sources.BranchNotFound},
		"a prefix of tags":        {func(c *git.RefsConfig) { c.Prefix = "refs/tags/members/" }, sources.BranchNotFound},
		"a relative folder":       {func(c *git.RefsConfig) { c.Dir = "d" }, sources.Unreachable},
		"no branches at all":      {func(c *git.RefsConfig) { c.Max = 0 }, sources.LimitExceeded},
		"a prefix with a pattern": {func(c *git.RefsConfig) { c.Prefix = "refs/heads/*/" }, sources.BranchNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			config := good
			test.change(&config)
			_, err := git.NewRefs(config)
			assert.Equal(t, test.reason, sources.ReasonOf(err), "%v", err)
		})
	}
}

func TestRefsAreSafeForConcurrentUse(t *testing.T) {
	_, server := pushable(t)
	refs := branches(t, request(t, server.URL))
	commit := push(t, refs, bob, parts(2), 1)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			_, err := refs.Push(t.Context(), alice, parts(i), "alice", at(int64(i)))
			assert.NoError(t, err)
		})
		all.Go(func() {
			_, _, err := refs.Fetch(t.Context(), nil)
			assert.NoError(t, err)
		})
		all.Go(func() {
			assert.NoError(t, refs.Files(t.Context(), commit, func(files fs.FS) error {
				_, err := fs.ReadFile(files, "record")
				return err
			}))
		})
	}
	all.Wait()
}
