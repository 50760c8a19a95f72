package git

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/fleetling/fleetling/sources"
)

// errGarbled marks bytes that don't have their form.
var errGarbled = errors.New("not readable")

// garbled does not wrap err, whose text may be the server's, unless it is a
// failure of our own file system, met while writing down what was read.
func garbled(err error) error {
	if diskFailure(err) != nil {
		return err
	}
	return fmt.Errorf("%w (%T)", errGarbled, err)
}

// limitError says which limit stands in the way.
type limitError struct{ text string }

func (e *limitError) Error() string { return e.text }

func tooMuch(format string, args ...any) error {
	return &limitError{text: fmt.Sprintf(format, args...)}
}

// limitReached turns a limitError into the error of our interface, and leaves
// others as they are.
func limitReached(err error) error {
	if limit, ok := errors.AsType[*limitError](err); ok {
		return &sources.Error{Reason: sources.LimitExceeded, Err: limit}
	}
	return err
}

// explain gives one reason and one sentence for whatever a try ended with. It
// goes by types and by what the wire and the context know, never by texts, and
// passes no text on that could hold a secret or an answer's body. again says
// that a fresh clone may go better.
func (e *endpoint) explain(ctx context.Context, w *wire, err error) (again bool, _ error) {
	broken := w.failure()
	err = peel(err)
	limit, big := errors.AsType[*limitError](errors.Join(broken, err))
	told, known := errors.AsType[*sources.Error](err)
	switch {
	case big:
		return false, e.fail(sources.LimitExceeded, nil, "%s", limit.text)
	case ctx.Err() != nil:
		return false, e.fail(sources.Unreachable, ctx.Err(), "no complete answer within %s: look at the server and the network between; it is asked again", e.Timeout)
	case known:
		return false, told
	}
	if explained := e.explainTLS(err, w.certificateAsked.Load()); explained != nil {
		return false, explained
	}
	if explained := e.explainNetwork(err, broken); explained != nil {
		return false, explained
	}
	if cause := diskFailure(err); cause != nil {
		return false, e.fail(sources.Unreachable, cause, "the repository on disk can't be written: its folder and the one above need space, and rights for this process")
	}
	if errors.Is(err, errMissing) {
		return true, e.fail(sources.Unreachable, err, "the server did not send all that belongs to the branch: its repository may be shallow or damaged, run `git fsck` there")
	}
	return true, e.fail(sources.Unreachable, nil, "the server's answer can't be used: look at the server and at what stands between; it is asked again")
}

func (e *endpoint) explainTLS(err error, certificateAsked bool) error {
	if cause, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return e.fail(sources.CertificateInvalid, cause.Err, "the server's certificate is not trusted: put the certificate of its authority into the file ca.crt of the credentials folder, or mend the server")
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return e.fail(sources.Unreachable, nil, "the server speaks plain http there: check scheme and port of the URL")
	}
	// crypto/tls has no type for what the other side objects to, but names the
	// operation so; that it had asked for a certificate is known from the handshake.
	alert, ok := errors.AsType[*net.OpError](err)
	switch {
	case !ok || alert.Op != "remote error":
		return nil
	case certificateAsked:
		return e.fail(sources.AuthenticationFailed, alert.Err, "the server wants a client certificate that it trusts: put it into the files tls.crt and tls.key of the credentials folder")
	default:
		return e.fail(sources.Unreachable, alert.Err, "the server ended TLS: it must speak version 1.2 or 1.3")
	}
}

func (e *endpoint) explainNetwork(err, broken error) error {
	if cause, ok := errors.AsType[*net.DNSError](err); ok {
		return e.fail(sources.Unreachable, cause, "the name has no address: check the host in the URL and the name service")
	}
	if cause, ok := errors.AsType[*net.OpError](err); ok {
		return e.fail(sources.Unreachable, cause, "no connection: look at the server and the network between; it is asked again")
	}
	if broken != nil {
		return e.fail(sources.Unreachable, broken, "the connection broke: look at the server and the network between; it is asked again")
	}
	if errors.Is(err, transport.ErrRepositoryNotFound) {
		return e.fail(sources.Unreachable, nil, "the server ended before it listed a branch: check that the repository exists and that the credentials may read it")
	}
	return nil
}

// diskFailure gives the failure of our own file system in err, or nil.
func diskFailure(err error) error {
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		return cause
	}
	if cause, ok := errors.AsType[*os.LinkError](err); ok {
		return cause
	}
	return nil
}

// peel takes off go-git's two wrappers that errors.As does not see through.
func peel(err error) error {
	if wrapped, ok := errors.AsType[*plumbing.UnexpectedError](err); ok {
		return wrapped.Err
	}
	if wrapped, ok := errors.AsType[*plumbing.PermanentError](err); ok {
		return wrapped.Err
	}
	return err
}
