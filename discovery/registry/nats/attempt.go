package nats

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// attemptTime bounds one attempt: a server that dies answers nobody.
const attemptTime = 2 * time.Second

// ErrDenied is that the server does not let this member do something.
var ErrDenied = errors.New("the registry refuses it to this member: look at its permissions")

// call tries again what another server, or the same one a moment later, may do:
// each request may be made twice.
func (c *Carrier) call(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	var last error
	err := backoff.Retry(func() error {
		if ctx.Err() != nil {
			return backoff.Permanent(ctx.Err())
		}
		err := c.attempt(ctx, do)
		if err == nil || !mayPass(err) {
			return permanent(err)
		}
		if last == nil || ctx.Err() == nil { // the end of time says nothing about the cause
			last = err
		}
		return err
	}, backoff.WithContext(newBackOff(), ctx))
	if err == nil || ctx.Err() == nil {
		return err
	}
	if cause := c.conn.LastError(); !c.conn.IsConnected() && cause != nil {
		return fmt.Errorf("%w: no connection: %w", ctx.Err(), cause)
	}
	if last == nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", ctx.Err(), last)
}

func permanent(err error) error {
	if err == nil {
		return nil
	}
	return backoff.Permanent(err)
}

// attempt ends early when the server says that something is not allowed: it says
// so beside the request, which then is never answered.
func (c *Carrier) attempt(ctx context.Context, do func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	defer c.expect(stop)()
	err := do(ctx)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrDenied) {
		return cause
	}
	return err
}

// expect makes stop be called with what onError hears, until the function that it
// gives is called.
func (c *Carrier) expect(stop context.CancelCauseFunc) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	id := c.last
	c.waiting[id] = stop
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, id)
	}
}

func (c *Carrier) onError(_ *nats.Conn, _ *nats.Subscription, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return // nats.go connects again by itself, and attempts end by time
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, stop := range c.waiting {
		stop(fmt.Errorf("%w (%w)", ErrDenied, err))
	}
}

// mayPass says whether trying again may help.
func mayPass(err error) bool {
	for _, lasting := range []error{ErrDenied, errSettings, nats.ErrConnectionClosed, jetstream.ErrMsgNotFound, jetstream.ErrStreamNotFound} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	if told, ok := errors.AsType[*jetstream.APIError](err); ok {
		return told.Code >= http.StatusInternalServerError
	}
	return true
}
