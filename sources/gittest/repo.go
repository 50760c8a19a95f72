package gittest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Repo is a repository with a working copy on branch main. Its git runs in an
// empty HOME, without system configuration.
type Repo struct {
	// Dir is the working copy. Dir/.git is what a server serves.
	Dir string
	// Time is the author and committer time of the next commit. Zero is now.
	Time time.Time

	t    T
	home string
}

// NewRepo makes an empty repository.
func NewRepo(t T) *Repo {
	t.Helper()
	r := &Repo{Dir: t.TempDir(), t: t, home: t.TempDir()}
	r.Git("init", "--quiet", "--initial-branch=main")
	return r
}

// Write puts a file into the working copy.
func (r *Repo) Write(path, content string) {
	r.t.Helper()
	full := filepath.Join(r.Dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		r.t.Fatalf("%v", err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		r.t.Fatalf("%v", err)
	}
}

// Remove takes a file or a folder out of the working copy.
func (r *Repo) Remove(path string) {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.Dir, filepath.FromSlash(path))); err != nil {
		r.t.Fatalf("%v", err)
	}
}

// Commit commits all of the working copy, signed by key, or unsigned where key
// is nil, and gives the commit's id. A commit may change nothing.
func (r *Repo) Commit(message string, key Key) string {
	r.t.Helper()
	r.Git("add", "--all")
	args := []string{"commit", "--quiet", "--allow-empty", "--message", message}
	if key != nil {
		args = append(append(key.gitConfig(), args...), "--gpg-sign")
	}
	r.Git(args...)
	return r.Head()
}

// Head gives the id of the checked-out commit.
func (r *Repo) Head() string {
	r.t.Helper()
	return r.Git("rev-parse", "HEAD")
}

// Git runs git in the working copy and gives what it printed, trimmed.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	return r.GitInput("", args...)
}

// GitInput is Git with something on standard input.
func (r *Repo) GitInput(input string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.Dir
	cmd.Env = r.environment()
	cmd.Stdin = strings.NewReader(input)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

func (r *Repo) environment() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + r.home,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=A U Thor", "GIT_AUTHOR_EMAIL=author@example.com",
		"GIT_COMMITTER_NAME=C O Mitter", "GIT_COMMITTER_EMAIL=committer@example.com",
	}
	if !r.Time.IsZero() {
		date := fmt.Sprintf("%d +0000", r.Time.Unix())
		env = append(env, "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	}
	return env
}
