package network

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// Listen listens in the namespace, on an IP address and port.
func (ns *Namespace) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	var listener net.Listener
	err := ns.within(func() error {
		var config net.ListenConfig
		var err error
		listener, err = config.Listen(ctx, network, address)
		return err
	})
	return listener, err
}

// Dial connects from inside the namespace to an IP address and port.
func (ns *Namespace) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := ns.within(func() error {
		var dialer net.Dialer
		var err error
		conn, err = dialer.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// within calls do on a thread that is in the namespace. A socket stays where it
// was made, whoever uses it later.
func (ns *Namespace) within(do func() error) error {
	result := make(chan error)
	go func() {
		// Never unlocked: the thread, which is of no use to others, ends with
		// the goroutine.
		runtime.LockOSThread()
		if err := ns.enter(); err != nil {
			result <- fmt.Errorf("enter %s: %w", ns.name, err)
			return
		}
		result <- do()
	}()
	return <-result
}

// enter moves the current thread.
func (ns *Namespace) enter() error {
	file, err := os.Open(filepath.Join(netns, ns.name))
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
}
