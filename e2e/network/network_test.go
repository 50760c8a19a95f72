package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience is for what must work, silence for what must not.
const (
	patience = 20 * time.Second
	silence  = 700 * time.Millisecond
)

func TestSitesReachEachOtherUntilTheirLinkIsCut(t *testing.T) {
	n, a, b, c := three(t)
	toB, toC := echo(t, b.Namespace, b.Address()), echo(t, c.Namespace, c.Address())
	standing := dial(t, a.Namespace, toB)
	require.NoError(t, ask(standing, patience))

	require.NoError(t, a.To(b).Cut(t.Context()))
	require.ErrorIs(t, ask(standing, silence), os.ErrDeadlineExceeded, "a connection that stands is cut in silence")
	require.ErrorIs(t, reach(t, a.Namespace, toB, silence), os.ErrDeadlineExceeded, "a new one too")
	require.NoError(t, reach(t, c.Namespace, echo(t, a.Namespace, a.Address()), patience), "other links are not cut")
	require.NoError(t, reach(t, a.Namespace, toC, patience))

	require.NoError(t, b.To(a).Heal(t.Context()), "from the other end")
	require.NoError(t, reach(t, a.Namespace, toB, patience))

	require.NoError(t, n.Isolate(t.Context(), a))
	require.ErrorIs(t, reach(t, a.Namespace, toB, silence), os.ErrDeadlineExceeded)
	require.ErrorIs(t, reach(t, a.Namespace, toC, silence), os.ErrDeadlineExceeded)
	require.NoError(t, reach(t, b.Namespace, toC, patience))
	require.NoError(t, n.Rejoin(t.Context(), a))
	require.NoError(t, reach(t, a.Namespace, toB, patience))
	require.NoError(t, reach(t, a.Namespace, toC, patience))
}

func TestLossTakesSomePacketsAndLeavesSome(t *testing.T) {
	_, a, b, _ := three(t)
	var server net.PacketConn
	require.NoError(t, b.within(func() error {
		var config net.ListenConfig
		var err error
		server, err = config.ListenPacket(t.Context(), "udp", b.Address().String()+":42")
		return err
	}))
	t.Cleanup(func() { _ = server.Close() })
	require.NoError(t, a.To(b).Loss(t.Context(), 50))
	client, err := a.Dial(t.Context(), "udp", b.Address().String()+":42")
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })

	const sent = 400
	for range sent {
		_, err := client.Write([]byte("x"))
		require.NoError(t, err)
	}
	require.NoError(t, server.SetReadDeadline(time.Now().Add(silence)))
	received := 0
	for buffer := make([]byte, 10); ; received++ {
		if _, _, err := server.ReadFrom(buffer); err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			break
		}
	}
	assert.Greater(t, received, sent/4)
	assert.Less(t, received, sent*3/4)

	for percent, want := range map[int]string{-1: "loss of -1%", 101: "loss of 101%"} {
		require.ErrorContains(t, a.To(b).Loss(t.Context(), percent), want)
	}
}

func TestPodIsReachedUnderItsAddress(t *testing.T) {
	_, a, b, _ := three(t)
	address := a.Address().Next()
	pod, err := a.Attach(t.Context(), address)
	require.NoError(t, err)
	server := echo(t, pod, address)
	require.NoError(t, reach(t, a.Namespace, server, patience), "from its site")
	require.NoError(t, reach(t, b.Namespace, server, patience), "from another site")

	far, err := b.Attach(t.Context(), b.Address().Next())
	require.NoError(t, err)
	conn := dial(t, far, server)
	require.NoError(t, ask(conn, patience), "from another site's Pod")
	assert.Equal(t, b.Address().Next().String(), host(conn.LocalAddr().String()), "nothing translates addresses")

	require.NoError(t, pod.Remove(t.Context()))
	require.NoError(t, pod.Remove(t.Context()), "a second time does nothing")
	again, err := a.Attach(t.Context(), address)
	require.NoError(t, err, "the address is free at once")
	require.NoError(t, reach(t, b.Namespace, echo(t, again, address), patience))
}

func TestAddressesOfOthersAreRefused(t *testing.T) {
	_, a, b, _ := three(t)
	for name, address := range map[string]netip.Addr{
		"the site's own": a.Address(), "another site's": b.Address().Next(), "none": {},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := a.Attach(t.Context(), address)
			require.ErrorContains(t, err, "not an address of a Pod in 172.16.0.0/24")
		})
	}
}

func TestForwardedServerIsReachedAlsoWhenAllIsCut(t *testing.T) {
	n, a, b, _ := three(t)
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	serve(t, listener)
	target := listener.Addr().String()

	require.ErrorContains(t, reach(t, a.Namespace, target, patience), "refused", "a site's loopback is its own")
	own, err := a.Forward(t.Context(), target, target)
	require.NoError(t, err)
	assert.Equal(t, target, own.Address())
	conn := dial(t, a.Namespace, target)
	require.NoError(t, ask(conn, patience))
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the end is handed on, both ways")

	public, err := b.Forward(t.Context(), b.Address().String()+":0", target)
	require.NoError(t, err)
	t.Cleanup(public.Close)
	require.NoError(t, reach(t, a.Namespace, public.Address(), patience))
	require.NoError(t, n.Isolate(t.Context(), a))
	require.NoError(t, reach(t, a.Namespace, target, patience))
	require.ErrorIs(t, reach(t, a.Namespace, public.Address(), silence), os.ErrDeadlineExceeded)

	standing := dial(t, a.Namespace, target)
	require.NoError(t, ask(standing, patience))
	own.Close()
	require.Error(t, ask(standing, patience), "its connections end with it")
	require.ErrorContains(t, reach(t, a.Namespace, target, patience), "refused")
}

func TestForwardBreaksConnectionsToWhatIsAway(t *testing.T) {
	_, a, _, _ := three(t)
	forwarder, err := a.Forward(t.Context(), "127.0.0.1:0", "127.0.0.1:1")
	require.NoError(t, err)
	t.Cleanup(forwarder.Close)
	err = ask(dial(t, a.Namespace, forwarder.Address()), patience)
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestFilesOfEtcAreTheNamespacesOwn(t *testing.T) {
	_, a, b, _ := three(t)
	require.NoError(t, a.WriteEtc("resolv.conf", "nameserver 192.0.2.1\n"))
	read := func(ns *Namespace) string {
		out, err := exec.CommandContext(t.Context(), "ip", "netns", "exec", ns.Name(), "cat", "/etc/resolv.conf").CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	assert.Equal(t, "nameserver 192.0.2.1\n", read(a.Namespace))
	assert.NotEqual(t, "nameserver 192.0.2.1\n", read(b.Namespace))
}

func TestRemoveLeavesNothing(t *testing.T) {
	n, err := New(t.Context())
	require.NoError(t, err)
	a, err := n.Add(t.Context(), "a")
	require.NoError(t, err)
	_, err = n.Add(t.Context(), "a")
	require.ErrorContains(t, err, "there is a namespace a already")
	_, err = n.Add(t.Context(), "b")
	require.NoError(t, err)
	pod, err := a.Attach(t.Context(), a.Address().Next())
	require.NoError(t, err)
	require.NoError(t, pod.WriteEtc("resolv.conf", ""))
	assert.Len(t, named(t, n.prefix), 4, "two sites, one Pod, one folder in /etc")

	require.NoError(t, n.Remove())
	assert.Empty(t, named(t, n.prefix))
	require.NoError(t, n.Remove(), "a second time does nothing")
}

func TestOnlyLeftoversOfGoneProcessesAreRemoved(t *testing.T) {
	ended := exec.CommandContext(t.Context(), "true")
	require.NoError(t, ended.Run())
	self, err := startOf(os.Getpid())
	require.NoError(t, err)
	names := map[string]bool{
		owner{ended.Process.Pid, self}.prefix() + "x-gone":     false,
		owner{os.Getpid(), self - 1}.prefix() + "x-id-reused":  false,
		owner{os.Getpid(), self}.prefix() + "x-of-one-running": true,
		fmt.Sprintf("fleetlingtest-%d-not-ours", os.Getpid()):  true,
	}
	for name := range names {
		require.NoError(t, ip(t.Context(), "", "netns add "+name))
		require.NoError(t, os.MkdirAll(filepath.Join(etc, name), 0o755))
		t.Cleanup(func() { _ = remove(context.Background(), name) })
	}
	n, err := New(t.Context())
	require.NoError(t, err)
	require.NoError(t, n.Remove())
	for name, stays := range names {
		assert.Equal(t, stays, exists(filepath.Join(netns, name)), name)
		assert.Equal(t, stays, exists(filepath.Join(etc, name)), name)
	}
}

func TestOwnerIsReadFromTheName(t *testing.T) {
	for name, want := range map[string]struct {
		owner owner
		ours  bool
	}{
		"fleetling-12-345-ab-eu":   {owner{12, 345}, true},
		"fleetling-12-345-ab-1-2":  {owner{12, 345}, true},
		"fleetling-12-345":         {},
		"fleetling-x-345-ab-eu":    {},
		"fleetling-12-x-ab-eu":     {owner{12, 0}, false},
		"fleetlings-12-345-ab-eu":  {},
		"cni-fleetling-12-345-a-b": {},
	} {
		got, ours := ownerOf(name)
		assert.Equal(t, want.ours, ours, name)
		if ours {
			assert.Equal(t, want.owner, got, name)
		}
	}
}

// three gives three sites, which end with the test.
func three(t *testing.T) (n *Network, a, b, c *Site) {
	t.Helper()
	n, err := New(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, n.Remove()) })
	sites := make([]*Site, 3)
	for i, name := range []string{"a", "b", "c"} {
		sites[i], err = n.Add(t.Context(), name)
		require.NoError(t, err)
	}
	return n, sites[0], sites[1], sites[2]
}

// echo starts a server that sends back what it gets.
func echo(t *testing.T, ns *Namespace, address netip.Addr) string {
	t.Helper()
	listener, err := ns.Listen(t.Context(), "tcp", address.String()+":0")
	require.NoError(t, err)
	serve(t, listener)
	return listener.Addr().String()
}

func serve(t *testing.T, listener net.Listener) {
	t.Helper()
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
}

func dial(t *testing.T, ns *Namespace, address string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := ns.Dial(ctx, "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ask sends something and waits for the answer.
func ask(conn net.Conn, limit time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("hello")); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 5))
	return err
}

// reach connects and asks.
func reach(t *testing.T, ns *Namespace, address string, limit time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	conn, err := ns.Dial(ctx, "tcp", address)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return os.ErrDeadlineExceeded
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	return ask(conn, limit)
}

func host(address string) string {
	host, _, _ := strings.Cut(address, ":")
	return host
}

// named gives what bears the names of a network.
func named(t *testing.T, prefix string) []string {
	t.Helper()
	var found []string
	for _, dir := range []string{netns, etc} {
		matches, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
		require.NoError(t, err)
		found = append(found, matches...)
	}
	return found
}
