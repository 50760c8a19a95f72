package gittest

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Stall is where an SSHServer stops answering and keeps the connection open.
type Stall string

// Stalls.
const (
	NoStall      Stall = ""
	StallBanner  Stall = "banner"
	StallChannel Stall = "channel"
	StallExec    Stall = "exec"
	StallRefs    Stall = "refs"
)

// SSHOptions say how an SSHServer behaves.
type SSHOptions struct {
	// HostKeys are "ed25519", "ecdsa", "rsa". None is one ed25519 key.
	HostKeys []string
	// Authorized is an authorized_keys line. "" lets every key in.
	Authorized string
	// Push lets everybody push who may read.
	Push bool
	// Stall is where it stops answering.
	Stall Stall
}

// SSHServer runs `git-upload-pack`, and `git-receive-pack` where it may, for one
// repository, whatever path is asked.
type SSHServer struct {
	// URL is that of the repository.
	URL string

	listener net.Listener
	config   *ssh.ServerConfig
	options  SSHOptions
	dir      string
	keys     []ssh.PublicKey
	running  sync.WaitGroup
	done     chan struct{}
	closing  sync.Once

	mu       sync.Mutex
	conns    []net.Conn
	commands []string
	users    []string
}

// ServeSSH serves the repository in dir, a bare one or a working copy, until the
// test ends.
func ServeSSH(t T, dir string, options SSHOptions) *SSHServer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("%v", err)
	}
	s := &SSHServer{
		URL:      "ssh://git@" + listener.Addr().String() + repositoryPath,
		listener: listener, options: options, dir: gitDir(dir), done: make(chan struct{}),
	}
	s.config = &ssh.ServerConfig{PublicKeyCallback: s.authorize}
	if len(options.HostKeys) == 0 {
		options.HostKeys = []string{"ed25519"}
	}
	for _, kind := range options.HostKeys {
		key := newHostKey(t, kind)
		s.config.AddHostKey(key)
		s.keys = append(s.keys, key.PublicKey())
	}
	s.running.Go(s.accept)
	t.Cleanup(s.Close)
	return s
}

// Address is 127.0.0.1:PORT.
func (s *SSHServer) Address() string { return s.listener.Addr().String() }

// HostKeys are the server's public keys, in the order of the options.
func (s *SSHServer) HostKeys() []ssh.PublicKey { return slices.Clone(s.keys) }

// KnownHosts are the lines of a known_hosts file, one per key.
func (s *SSHServer) KnownHosts() string {
	var lines strings.Builder
	for _, key := range s.keys {
		lines.WriteString(knownhosts.Line([]string{knownhosts.Normalize(s.Address())}, key) + "\n")
	}
	return lines.String()
}

// Connections is how many connections were made.
func (s *SSHServer) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Commands are what clients asked to run.
func (s *SSHServer) Commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// Users are the names that clients logged in with.
func (s *SSHServer) Users() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.users)
}

// Close hangs up on everybody and waits for the end. The end of the test does so
// too.
func (s *SSHServer) Close() {
	s.closing.Do(func() { close(s.done) })
	_ = s.listener.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

func (s *SSHServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, conn)
		s.mu.Unlock()
		s.running.Go(func() { s.serve(conn) })
	}
}

// stall keeps the connection open until the test ends, and says whether it did.
func (s *SSHServer) stall(where Stall) bool {
	if s.options.Stall != where {
		return false
	}
	<-s.done
	return true
}

func (s *SSHServer) serve(conn net.Conn) {
	defer conn.Close()
	if s.stall(StallBanner) {
		return
	}
	server, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.users = append(s.users, server.User())
	s.mu.Unlock()
	s.running.Go(func() { ssh.DiscardRequests(requests) })
	for offered := range channels {
		if s.stall(StallChannel) {
			return
		}
		channel, asked, err := offered.Accept()
		if err != nil {
			return
		}
		s.running.Go(func() { s.session(channel, asked) })
	}
}

func (s *SSHServer) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for r := range requests {
		if r.Type != "exec" {
			_ = r.Reply(false, nil)
			continue
		}
		if s.stall(StallExec) {
			return
		}
		var exec struct{ Command string }
		if err := ssh.Unmarshal(r.Payload, &exec); err != nil {
			return
		}
		s.mu.Lock()
		s.commands = append(s.commands, exec.Command)
		s.mu.Unlock()
		_ = r.Reply(true, nil)
		if s.stall(StallRefs) {
			return
		}
		status := struct{ Status uint32 }{s.run(channel, exec.Command)}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
		return
	}
}

func (s *SSHServer) run(channel ssh.Channel, command string) uint32 {
	program, _, _ := strings.Cut(command, " ")
	if program != "git-upload-pack" && (program != "git-receive-pack" || !s.options.Push) {
		_, _ = io.WriteString(channel.Stderr(), "not allowed\n")
		return 128
	}
	cmd := exec.CommandContext(context.Background(), program, s.dir)
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	in, err := cmd.StdinPipe()
	if err != nil {
		return 128
	}
	if err := cmd.Start(); err != nil {
		return 128
	}
	// Not cmd.Stdin: Wait would wait for a client that sends no end.
	s.running.Go(func() {
		_, _ = io.Copy(in, channel)
		_ = in.Close()
	})
	if err := cmd.Wait(); err != nil {
		return 128
	}
	return 0
}

func (s *SSHServer) authorize(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	if s.options.Authorized == "" {
		return nil, nil
	}
	want, _, _, _, err := ssh.ParseAuthorizedKey([]byte(s.options.Authorized))
	if err != nil || !slices.Equal(want.Marshal(), key.Marshal()) {
		return nil, errors.New("unknown key")
	}
	return nil, nil
}

func newHostKey(t T, kind string) ssh.Signer {
	t.Helper()
	var key any
	var err error
	switch kind {
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ecdsa":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		t.Fatalf("no host key of type %q", kind)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return signer
}
