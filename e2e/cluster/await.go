package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/process"
)

const (
	// startLimit is for a machine that is busy with builds.
	startLimit = 3 * time.Minute
	interval   = 50 * time.Millisecond

	// Ports from here on, this many: below Linux' range for outgoing
	// connections (32768 and up) and for NodePorts (30000 and up).
	firstPort = 20000
	ports     = 10000
)

// start starts a component.
func start(program build.Program, log string, args ...string) (*process.Process, error) {
	return process.Start(process.Command{Path: program[0], Args: append(program[1:len(program):len(program)], args...), Log: log})
}

// await polls until check passes. It ends early, with the last lines of its log,
// when the process that the check asks has ended.
func await(ctx context.Context, p *process.Process, check func(context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, startLimit, errors.New("not ready in "+startLimit.String()))
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		last := check(limited)
		if last == nil {
			return nil
		}
		select {
		case <-p.Done():
			return p.Explain(fmt.Errorf("ended: %w", errors.Join(p.Wait(), last)))
		case <-limited.Done():
			if ctx.Err() != nil {
				// Given up from outside: not the process' doing.
				return context.Cause(ctx)
			}
			return p.Explain(fmt.Errorf("%w: %w", context.Cause(limited), last))
		case <-ticker.C:
		}
	}
}

func healthy(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return err
}

// freePort gives a port that nobody listens on.
func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	var err error
	for range 100 {
		port := firstPort + rand.IntN(ports)
		var listener net.Listener
		if listener, err = config.Listen(ctx, "tcp", loopback(port)); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("no free port: %w", err)
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
