package git_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/gittest"
)

// line is a line of known_hosts.
func line(host string, key ssh.PublicKey) string {
	return knownhosts.Line([]string{host}, key) + "\n"
}

func TestB27SSHHostKeys(t *testing.T) {
	repo := seeded(t)
	s := gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{HostKeys: []string{"rsa", "ecdsa", "ed25519"}})
	other := gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{HostKeys: []string{"rsa", "ecdsa", "ed25519"}})
	host := knownhosts.Normalize(s.Address())
	rsa, ecdsa, ed := s.HostKeys()[0], s.HostKeys()[1], s.HostKeys()[2]
	for name, test := range map[string]struct {
		file  string
		words []string // nil is trusted
	}{
		"three keys, ed25519 last":        {line(host, rsa) + line(host, ecdsa) + line(host, ed), nil},
		"three keys, ed25519 first":       {line(host, ed) + line(host, ecdsa) + line(host, rsa), nil},
		"only rsa":                        {line(host, rsa), nil},
		"only ecdsa":                      {line(host, ecdsa), nil},
		"only ed25519":                    {line(host, ed), nil},
		"a hashed name":                   {knownhosts.HashHostname(host) + " " + strings.TrimPrefix(line("x", ecdsa), "x "), nil},
		"a wildcard":                      {"*.0.0.1 " + strings.TrimPrefix(line("x", ed), "x "), nil},
		"several names on a line":         {knownhosts.Line([]string{"git.example.com", host}, ed) + "\n", nil},
		"comments and CRLF":               {"# hosts\r\n\r\n" + strings.TrimSuffix(line(host, ed), "\n") + " a comment\r\n", nil},
		"an old and a new key of a type":  {line(host, other.HostKeys()[2]) + line(host, ed), nil},
		"another host besides":            {line("git.example.com", other.HostKeys()[2]) + line(host, ed), nil},
		"the key of another server":       {line(host, other.HostKeys()[2]), []string{"somebody may be listening", ssh.FingerprintSHA256(ed)}},
		"another server's, of each type":  {line(host, other.HostKeys()[0]) + line(host, other.HostKeys()[1]), []string{"somebody may be listening"}},
		"a host that is not listed":       {line("git.example.com", ed), []string{"add this line", "[127.0.0.1]:", "known_hosts"}},
		"the same host on another port":   {line("127.0.0.1", ed), []string{"add this line"}},
		"an empty file":                   {"\n", []string{"add this line"}},
		"a key that is revoked":           {line(host, ed) + "@revoked " + line("*", ed), []string{"revoked"}},
		"a negated name":                  {"!" + host + "," + host + " " + strings.TrimPrefix(line("x", ed), "x "), []string{"add this line"}},
		"an authority instead of the key": {"@cert-authority " + line(host, ed), []string{"no host key of a type"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := sshRequest(t, s)
			require.NoError(t, os.WriteFile(filepath.Join(r.Credentials, "known_hosts"), []byte(test.file), 0o600))
			if test.words == nil {
				assert.Equal(t, repo.Head(), fetch(t, r).Head)
				return
			}
			before := len(s.Users())
			refused(t, r, sources.HostKeyMismatch, test.words...)
			assert.Len(t, s.Users(), before, "nobody logged in")
			assert.NoDirExists(t, r.Dir)
		})
	}
}

func TestB27SSHServerHasNoKeyOfAListedType(t *testing.T) {
	repo := seeded(t)
	s := gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{HostKeys: []string{"ed25519"}})
	other := gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{HostKeys: []string{"rsa"}})
	r := sshRequest(t, s)
	file := line(knownhosts.Normalize(s.Address()), other.HostKeys()[0])
	require.NoError(t, os.WriteFile(filepath.Join(r.Credentials, "known_hosts"), []byte(file), 0o600))
	refused(t, r, sources.HostKeyMismatch, "no host key of a type")
}

func TestB27SSHTheLineThatTheErrorNamesIsTheOneToAdd(t *testing.T) {
	repo := seeded(t)
	s := gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{HostKeys: []string{"ecdsa"}})
	r := sshRequest(t, s)
	file := filepath.Join(r.Credentials, "known_hosts")
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	err := refusal(t, r, sources.HostKeyMismatch, file, ssh.FingerprintSHA256(s.HostKeys()[0]))
	_, named, found := strings.Cut(err.Error(), "add this line: ")
	require.True(t, found)
	require.NoError(t, os.WriteFile(file, []byte(named+"\n"), 0o600))
	fetch(t, r)
}

func TestB27SSHServerChangesItsHostKey(t *testing.T) {
	repo := seeded(t)
	first := gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{})
	r := sshRequest(t, first)
	head := fetch(t, r).Head
	second := gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{})
	file := line(knownhosts.Normalize(second.Address()), first.HostKeys()[0])
	require.NoError(t, os.WriteFile(filepath.Join(r.Credentials, "known_hosts"), []byte(file), 0o600))
	r.URL = second.URL
	refused(t, r, sources.HostKeyMismatch, "somebody may be listening")
	whole(t, r.Dir, head)
}

func TestSSHLogin(t *testing.T) {
	repo := seeded(t)
	for name, kind := range map[string][]string{"ed25519": {"ed25519"}, "rsa": {"rsa", "-b", "2048"}, "ecdsa": {"ecdsa"}, "rsa in PEM": {"rsa", "-b", "2048", "-m", "PEM"}} {
		t.Run(name, func(t *testing.T) {
			key := gittest.NewSSHKey(t, "reader", kind[0], kind[1:]...)
			s := gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{Authorized: key.Line})
			r := request(t, s.URL)
			r.Credentials = credentials(t, map[string]string{"identity": privateKey(t, key), "known_hosts": s.KnownHosts()})
			assert.Equal(t, repo.Head(), fetch(t, r).Head)
		})
	}
	t.Run("a key with a passphrase", func(t *testing.T) {
		key := gittest.NewSSHKey(t, "reader", "ed25519", "-N", canary)
		s := gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{Authorized: key.Line})
		r := request(t, s.URL)
		files := map[string]string{"identity": privateKey(t, key), "known_hosts": s.KnownHosts()}
		r.Credentials = credentials(t, with(files, "password", canary+"\n"))
		assert.Equal(t, repo.Head(), fetch(t, r).Head)
		r.Credentials = credentials(t, files)
		refused(t, r, sources.AuthenticationFailed, "passphrase")
		r.Credentials = credentials(t, with(files, "password", "wrong"))
		refused(t, r, sources.AuthenticationFailed, "passphrase")
	})
	t.Run("a key that may not read", func(t *testing.T) {
		s := gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{Authorized: gittest.NewSSHKey(t, "other", "ed25519").Line})
		refused(t, sshRequest(t, s), sources.AuthenticationFailed, "refused the key", "identity")
		assert.Empty(t, s.Commands())
	})
}

func TestSSHUserAndCommandAreThoseOfTheURL(t *testing.T) {
	repo := seeded(t)
	s := gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{})
	r := sshRequest(t, s)
	for _, url := range []string{"ssh://" + s.Address() + "/org/fleet.git", "ssh://deploy@" + s.Address() + "/My%20Project/fleet"} {
		r.URL = url
		fetch(t, r)
	}
	assert.Equal(t, []string{"git", "deploy"}, s.Users())
	assert.Equal(t, []string{"git-upload-pack '/org/fleet.git'", "git-upload-pack '/My Project/fleet'"}, s.Commands())
}

func TestSSHReadsNothingOfTheUserItRunsAs(t *testing.T) {
	repo := seeded(t)
	s := gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{})
	trap := gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{})
	home := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, ".ssh"), 0o700))
	host, port, err := net.SplitHostPort(trap.Address())
	require.NoError(t, err)
	config := "Host *\n  HostName " + host + "\n  Port " + port + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(home, ".ssh", "config"), []byte(config), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".ssh", "known_hosts"), []byte(s.KnownHosts()+trap.KnownHosts()), 0o600))
	agent, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(home, "agent"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, agent.Close()) })
	t.Setenv("HOME", home)
	t.Setenv("SSH_AUTH_SOCK", filepath.Join(home, "agent"))
	t.Setenv("SSH_KNOWN_HOSTS", filepath.Join(home, ".ssh", "known_hosts"))
	r := sshRequest(t, s)
	fetch(t, r)
	assert.Zero(t, trap.Connections())
	require.NoError(t, os.WriteFile(filepath.Join(r.Credentials, "known_hosts"), []byte("\n"), 0o600))
	refused(t, r, sources.HostKeyMismatch)
	require.NoError(t, agent.(*net.UnixListener).SetDeadline(time.Now()))
	_, err = agent.Accept()
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "nobody asked the agent")
}

func TestSSHOfARepositoryThatIsNotThere(t *testing.T) {
	s := gittest.ServeSSH(t, t.TempDir(), gittest.SSHOptions{})
	refused(t, sshRequest(t, s), sources.Unreachable, "check that the repository exists")
}

func TestG14AServerThatStopsAnsweringEndsWithTheDeadline(t *testing.T) {
	repo := seeded(t)
	for _, stall := range []gittest.Stall{gittest.StallBanner, gittest.StallChannel, gittest.StallExec, gittest.StallRefs} {
		t.Run("ssh "+string(stall), func(t *testing.T) {
			before := runtime.NumGoroutine()
			s := gittest.ServeSSH(t, repo.Dir, gittest.SSHOptions{Stall: stall})
			r := sshRequest(t, s)
			r.Timeout = 300 * time.Millisecond
			for range 2 {
				late(t, r)
			}
			assert.NotZero(t, s.Connections())
			s.Close()
			settled(t, before)
		})
	}
	for name, stall := range map[string]func(*http.Request) bool{
		"https refs": func(r *http.Request) bool { return r.Method == http.MethodGet },
		"https pack": func(r *http.Request) bool { return r.Method == http.MethodPost },
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			s, r := serveTLS(t, repo, gittest.HTTPOptions{}, nil)
			over := make(chan struct{})
			s.SetBefore(func(r *http.Request) {
				if stall(r) {
					<-over
				}
			})
			r.Timeout = 3 * time.Second
			late(t, r)
			asked := s.Requests()
			assert.True(t, stall(&http.Request{Method: asked[len(asked)-1].Method}), "it came so far")
			close(over)
			s.Close()
			settled(t, before)
		})
	}
}

// late fetches from a server that does not answer.
func late(t *testing.T, r git.Request) {
	t.Helper()
	_, err := git.Fetch(t.Context(), r)
	because(t, err, sources.Unreachable, "no complete answer within "+r.Timeout.String())
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

// settled waits until no more goroutines run than most.
func settled(t *testing.T, most int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for runtime.NumGoroutine() > most {
		select {
		case <-tick.C:
		case <-ctx.Done():
			stacks := make([]byte, 1<<20)
			t.Fatalf("more than %d goroutines are left:\n%s", most, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
