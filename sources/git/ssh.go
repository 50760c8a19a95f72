package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"github.com/fleetling/fleetling/sources"
)

// sshSession runs git-upload-pack or git-receive-pack on the other side.
type sshSession struct {
	client *ssh.Client
	in     io.WriteCloser
	out    io.Reader
	asked  bool
}

// connectSSH blocks until the server answers or the wire is closed.
func (e *endpoint) connectSSH(ctx context.Context, w *wire, program string) (*sshSession, error) {
	config, err := e.sshConfig()
	if err != nil {
		return nil, err
	}
	conn, err := w.dial(ctx, "tcp", e.address())
	if err != nil {
		return nil, err
	}
	var trusted atomic.Bool // set by a goroutine of x/crypto/ssh
	check := config.HostKeyCallback
	config.HostKeyCallback = func(host string, remote net.Addr, key ssh.PublicKey) error {
		err := e.judgeHostKey(key, check(host, remote, key))
		trusted.Store(err == nil)
		return err
	}
	c, channels, requests, err := ssh.NewClientConn(conn, e.address(), config)
	if err != nil {
		return nil, e.judgeHandshake(err, trusted.Load(), w)
	}
	client := ssh.NewClient(c, channels, requests)
	s, err := e.start(client, program)
	if err != nil {
		return nil, errors.Join(err, hangUp(client))
	}
	return s, nil
}

// sshConfig uses nothing but the URL and the credentials folder: no agent, no
// ~/.ssh, no environment.
func (e *endpoint) sshConfig() (*ssh.ClientConfig, error) {
	signer, hosts, err := e.sshKeys()
	if err != nil {
		return nil, err
	}
	user := "git"
	if name := e.url.User.Username(); name != "" {
		user = name
	}
	return &ssh.ClientConfig{
		User:            user,
		Auth:            []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: hosts.HostKeyCallback(),
		// Only key types that known_hosts has for this host: else the server might
		// offer one that it does not have, and a good host would be refused.
		HostKeyAlgorithms: hosts.HostKeyAlgorithms(e.address()),
	}, nil
}

func (e *endpoint) judgeHostKey(key ssh.PublicKey, err error) error {
	if err == nil {
		return nil
	}
	file := filepath.Join(e.secrets.folder, "known_hosts")
	if _, revoked := errors.AsType[*xknownhosts.RevokedError](err); revoked {
		return e.fail(sources.HostKeyMismatch, nil, "the server's host key %s is revoked in %s", ssh.FingerprintSHA256(key), file)
	}
	if knownhosts.IsHostUnknown(err) {
		return e.fail(sources.HostKeyMismatch, nil, "%s has no line for this host: compare the fingerprint %s with what the server's owner publishes, then add this line: %s", file, ssh.FingerprintSHA256(key), knownhosts.Line([]string{e.address()}, key))
	}
	return e.fail(sources.HostKeyMismatch, nil, "the server shows host key %s, which is not the one in %s: somebody may be listening in; replace the line only if the server's owner publishes the new key", ssh.FingerprintSHA256(key), file)
}

// judgeHandshake tells a refused login by state: x/crypto/ssh has no type for
// it. After the host key was accepted only authentication is left, so a
// handshake that then ends without a network failure was refused.
func (e *endpoint) judgeHandshake(err error, trusted bool, w *wire) error {
	if _, told := errors.AsType[*sources.Error](err); told {
		return err
	}
	if negotiation, ok := errors.AsType[*ssh.AlgorithmNegotiationError](err); ok {
		if negotiation.What == "host key" {
			return e.fail(sources.HostKeyMismatch, nil, "the server has no host key of a type that %s lists for it: add the line of one that it has", filepath.Join(e.secrets.folder, "known_hosts"))
		}
		return e.fail(sources.Unreachable, nil, "the server knows no algorithm that is still secure: update the server")
	}
	if trusted && w.failure() == nil {
		return e.fail(sources.AuthenticationFailed, nil, "the server refused the key in the file identity: add its public key to those that may %s this repository, and check the user in the URL", e.may)
	}
	return err
}

func (e *endpoint) start(client *ssh.Client, program string) (*sshSession, error) {
	s := &sshSession{client: client}
	session, err := client.NewSession()
	if err != nil {
		return nil, e.fail(sources.Unreachable, nil, "the server opens no session: it must let this key run %s", program)
	}
	if s.in, err = session.StdinPipe(); err != nil {
		return nil, err
	}
	if s.out, err = session.StdoutPipe(); err != nil {
		return nil, err
	}
	// checkPath lets no quote through.
	if err := session.Start(program + " '" + e.url.Path + "'"); err != nil {
		return nil, e.fail(sources.Unreachable, nil, "the server does not run %s for this key", program)
	}
	return s, nil
}

// AdvertisedReferencesContext reads the refs. What bounds it is the wire.
func (s *sshSession) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	err := refs.Decode(s.out)
	switch {
	case errors.Is(err, packp.ErrEmptyAdvRefs), err == nil && refs.IsEmpty():
		return nil, transport.ErrEmptyRemoteRepository
	case errors.Is(err, packp.ErrEmptyInput):
		return nil, transport.ErrRepositoryNotFound
	}
	return refs, err
}

// UploadPack asks for a pack. What bounds it is the wire.
func (s *sshSession) UploadPack(_ context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	s.asked = true
	if err := req.UploadRequest.Encode(s.in); err != nil {
		return nil, err
	}
	if err := req.UploadHaves.Encode(s.in, true); err != nil {
		return nil, err
	}
	if err := pktline.NewEncoder(s.in).EncodeString("done\n"); err != nil {
		return nil, err
	}
	if err := s.in.Close(); err != nil {
		return nil, err
	}
	res := packp.NewUploadPackResponse(req)
	if err := res.Decode(io.NopCloser(s.out)); err != nil {
		return nil, fmt.Errorf("upload-pack: %w", err)
	}
	return res, nil
}

// ReceivePack sends a pack and gives what the server says of each branch. What
// bounds it is the wire.
func (s *sshSession) ReceivePack(_ context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	s.asked = true
	if err := errors.Join(req.Encode(s.in), s.in.Close()); err != nil {
		return nil, err
	}
	report := packp.NewReportStatus()
	return report, report.Decode(s.out)
}

// Close ends the program in order where nothing was asked of it, and returns
// when all that the connection started has ended.
func (s *sshSession) Close() error {
	if !s.asked {
		_ = pktline.NewEncoder(s.in).Flush() // a courtesy: the server logs no broken connection
	}
	return hangUp(s.client)
}

func hangUp(client *ssh.Client) error {
	err := client.Close()
	_ = client.Wait() // says that the connection is closed
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
