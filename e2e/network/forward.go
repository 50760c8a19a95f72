package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Forwarder hands connections on from a namespace to this process' own.
type Forwarder struct {
	listener net.Listener
	target   string
	cancel   context.CancelFunc
	group    sync.WaitGroup
}

// Forward listens in the namespace and hands each TCP connection on to a
// target that this process reaches, both an IP address and port. Whoever starts it closes it.
func (ns *Namespace) Forward(ctx context.Context, address, target string) (*Forwarder, error) {
	listener, err := ns.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("forward %s: %w", address, err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &Forwarder{listener: listener, target: target, cancel: cancel}
	f.group.Go(func() { f.accept(running) })
	return f, nil
}

// Address is where it listens.
func (f *Forwarder) Address() string { return f.listener.Addr().String() }

// Close ends it and all connections through it.
func (f *Forwarder) Close() {
	f.cancel()
	_ = f.listener.Close()
	f.group.Wait()
}

func (f *Forwarder) accept(ctx context.Context) {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.group.Go(func() { f.serve(ctx, conn) })
	}
}

// serve ends when both directions have ended. Where the target is away, the client
// sees a connection that breaks.
func (f *Forwarder) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", f.target)
	if err != nil {
		return
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})
	defer stop()
	var back sync.WaitGroup
	back.Go(func() { pipe(client, server) })
	pipe(server, client)
	back.Wait()
}

// pipe copies until the source ends, and hands its end on; where a side breaks, it
// breaks the other.
func pipe(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(*net.TCPConn); ok && err == nil {
		err = half.CloseWrite()
	}
	if err != nil && !errors.Is(err, net.ErrClosed) {
		_ = to.Close()
		_ = from.Close()
	}
}
