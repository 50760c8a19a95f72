package git

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// wire owns every connection of one try, of both transports. It counts and
// bounds what they receive, and closes them when the context ends: neither
// x/crypto/ssh nor go-git stops waiting for a silent server by itself.
type wire struct {
	certificateAsked atomic.Bool // the server asked for a client certificate

	mu       sync.Mutex
	conns    []net.Conn
	closed   bool
	received int64
	limit    int64
	advice   string // what to do when limit is reached
	exceeded bool
	broken   error // the first failure of the network, not of what it carried
	stop     func() bool
}

// newWire lets nothing in until allow is called. It needs to be closed.
func newWire(ctx context.Context) *wire {
	w := &wire{}
	w.stop = context.AfterFunc(ctx, w.hangUp)
	return w
}

func (w *wire) close() {
	w.stop()
	w.hangUp()
}

func (w *wire) hangUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, c := range w.conns {
		_ = c.Close() // nothing waits to be written, and nobody could act on it
	}
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	w.conns = append(w.conns, conn)
	return &countedConn{Conn: conn, wire: w}, nil
}

// allow lets n more bytes in.
func (w *wire) allow(n int64, advice string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit, w.advice = w.received+n, advice
}

// total gives the bytes received.
func (w *wire) total() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.received
}

// failure gives what ended the wire: a limitError, a failure of the network, or
// nil where it was only what it carried.
func (w *wire) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.exceeded {
		return tooMuch("the server sent more than %d bytes: %s", w.limit, w.advice)
	}
	return w.broken
}

// count gives what is wrong with having received n more bytes, and err.
func (w *wire) count(n int, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.received += int64(n)
	if w.received > w.limit {
		w.exceeded = true
		return errWireLimit
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && w.broken == nil {
		w.broken = err
	}
	return err
}

var errWireLimit = errors.New("more bytes than allowed")

type countedConn struct {
	net.Conn
	wire *wire
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.wire.count(n, err)
}
