package git_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/gittest"
)

const main = "refs/heads/main"

// child makes the test binary a process that fetches once: one that can be killed.
var child = flag.String("fetch", "", "a git.Request as JSON: fetch it and exit")

func TestMain(m *testing.M) {
	flag.Parse()
	if *child == "" {
		m.Run()
		return
	}
	var r git.Request
	if err := json.Unmarshal([]byte(*child), &r); err != nil {
		panic(err)
	}
	result, err := git.Fetch(context.Background(), r)
	fmt.Fprintln(os.Stdout, result.Head, err)
}

// request is for main at url, into a folder that is not there yet.
func request(tb testing.TB, url string) git.Request {
	tb.Helper()
	return git.Request{
		Remote: git.Remote{URL: url, Branch: main, Timeout: time.Minute, Limits: sources.DefaultLimits()},
		Dir:    filepath.Join(tb.TempDir(), "repository"),
	}
}

// credentials makes a folder of files.
func credentials(tb testing.TB, files map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, content := range files {
		require.NoError(tb, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

func privateKey(t *testing.T, key *gittest.SSHKey) string {
	t.Helper()
	data, err := os.ReadFile(key.Private)
	require.NoError(t, err)
	return string(data)
}

// sshRequest is request with a key that may read and the server's known_hosts.
func sshRequest(t *testing.T, s *gittest.SSHServer) git.Request {
	t.Helper()
	r := request(t, s.URL)
	r.Credentials = credentials(t, map[string]string{
		"identity":    privateKey(t, gittest.NewSSHKey(t, "reader", "ed25519")),
		"known_hosts": s.KnownHosts(),
	})
	return r
}

// serving gives, for plain http, https and ssh, what serves a repository and asks
// for its main.
func serving() map[string]func(t *testing.T, repo *gittest.Repo) git.Request {
	return map[string]func(*testing.T, *gittest.Repo) git.Request{
		"http": func(t *testing.T, repo *gittest.Repo) git.Request {
			t.Helper()
			return request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
		},
		"https": func(t *testing.T, repo *gittest.Repo) git.Request {
			t.Helper()
			s := gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{TLS: true, Username: "u", Password: "p"})
			r := request(t, s.URL)
			r.Credentials = credentials(t, map[string]string{"ca.crt": string(s.CA()), "username": "u", "password": "p"})
			return r
		},
		"ssh": func(t *testing.T, repo *gittest.Repo) git.Request {
			t.Helper()
			return sshRequest(t, gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{}))
		},
	}
}

func fetch(tb testing.TB, r git.Request) git.Result {
	tb.Helper()
	result, err := git.Fetch(tb.Context(), r)
	require.NoError(tb, err)
	return result
}

// refused fetches and asserts that it fails for a reason, in words that contain
// each of words.
func refused(t *testing.T, r git.Request, want sources.Reason, words ...string) {
	t.Helper()
	assert.Error(t, refusal(t, r, want, words...))
}

// refusal is refused that gives the error.
func refusal(t *testing.T, r git.Request, want sources.Reason, words ...string) error {
	t.Helper()
	result, err := git.Fetch(t.Context(), r)
	require.Error(t, err)
	assert.Equal(t, git.Result{}, result)
	because(t, err, want, words...)
	return err
}

func because(t *testing.T, err error, want sources.Reason, words ...string) {
	t.Helper()
	require.Error(t, err)
	assert.Equal(t, want, sources.ReasonOf(err), "%v", err)
	for _, word := range words {
		assert.ErrorContains(t, err, word)
	}
}

// open opens what a fetch left.
func open(t *testing.T, dir string) *git.Repository {
	t.Helper()
	r, err := git.Open(dir, sources.DefaultLimits())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	return r
}

// whole asserts that the head of the repository in dir is the commit head, and
// that git itself finds nothing wrong with the repository.
func whole(t *testing.T, dir, head string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "HEAD"))
	require.NoError(t, err)
	assert.Equal(t, head+"\n", string(text))
	out, err := exec.CommandContext(t.Context(), "git", "--git-dir="+dir, "fsck", "--full", "--strict", "--no-dangling").CombinedOutput()
	assert.NoError(t, err)
	assert.Empty(t, string(out))
}

// grow adds n commits at once, each with a file of its own, and gives the head.
func grow(tb testing.TB, repo *gittest.Repo, name string, n int) string {
	tb.Helper()
	var stream strings.Builder
	for i := range n {
		fmt.Fprintf(&stream, "commit %s\ncommitter C <c@example.com> %d +0000\ndata 1\n.\n", main, 1_700_000_000+i)
		if i == 0 {
			fmt.Fprintf(&stream, "from %s^0\n", main)
		}
		content := fmt.Sprintf("name: %s-%d\n", name, i)
		fmt.Fprintf(&stream, "M 100644 inline %s/%d.yaml\ndata %d\n%s\n", name, i, len(content), content)
	}
	repo.GitInput(stream.String(), "fast-import", "--quiet", "--force")
	repo.Git("reset", "--quiet", "--hard", main)
	return repo.Head()
}

// seeded is a repository with one commit.
func seeded(tb testing.TB) *gittest.Repo {
	tb.Helper()
	repo := gittest.NewRepo(tb)
	repo.Write("fleetling.yaml", "kind: Fleet\n")
	repo.Write("addons/a/cm.yaml", "kind: ConfigMap\n")
	repo.Commit("first", nil)
	return repo
}

func splitLines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }
