package nats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fleetling/fleetling/discovery"
)

// heartbeat is how often a server that has no news says so. Two missed ones end a
// reading.
const heartbeat = time.Second

// errGap is that a message did not come.
var errGap = errors.New("a message is missing")

// Watch is discovery.Watcher's. Whenever the reading breaks, all heads are listed
// again, and those told of that differ: nothing is missed, but what was replaced in
// between. A head whose Record and Status are empty has been taken out.
func (c *Carrier) Watch(ctx context.Context, changed func(discovery.Head)) error {
	w := &watch{carrier: c, changed: changed, heads: map[string]discovery.Head{}}
	pause := newBackOff()
	err := backoff.Retry(func() error {
		if ctx.Err() != nil {
			return backoff.Permanent(ctx.Err())
		}
		err := w.once(ctx, pause.Reset)
		if ctx.Err() == nil && mayPass(err) {
			return err
		}
		return backoff.Permanent(err)
	}, backoff.WithContext(pause, ctx))
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return fmt.Errorf("watch: %w", err)
}

// watch remembers what was told.
type watch struct {
	carrier *Carrier
	changed func(discovery.Head)
	heads   map[string]discovery.Head
}

// once reads until something breaks. listed is called when all that was there has
// been read.
func (w *watch) once(ctx context.Context, listed func()) error {
	c := w.carrier
	var reader jetstream.Consumer
	err := c.attempt(ctx, func(ctx context.Context) (err error) {
		reader, err = c.reader(ctx, []string{c.subject("*", recordKey), c.subject("*", statusKey)})
		return err
	})
	if err != nil {
		return err
	}
	defer c.forget(ctx, reader)
	pending := reader.CachedInfo().NumPending
	if pending > 2*maxMembers {
		return fmt.Errorf("%w: %d keys, more than %d are not read", errSettings, pending, 2*maxMembers)
	}
	messages, err := reader.Messages(jetstream.PullMaxMessages(pageSize), jetstream.PullHeartbeat(heartbeat), jetstream.PullExpiry(30*time.Second))
	if err != nil {
		return err
	}
	defer messages.Stop()
	return w.read(ctx, messages, pending, listed)
}

// read collects what was there before it tells of it: a member's record and status
// come one after the other. Then it tells of each message.
func (w *watch) read(ctx context.Context, messages jetstream.MessagesContext, pending uint64, listed func()) error {
	heads := map[string]discovery.Head{}
	if pending == 0 {
		w.tell(heads)
		listed()
	}
	for count := uint64(1); ; count++ {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		if meta, err := m.Metadata(); err != nil || meta.Sequence.Consumer != count {
			return errors.Join(err, errGap)
		}
		i, err := w.carrier.itemOf(ctx, m)
		if err != nil {
			return err
		}
		if head := i.onto(heads[i.member]); head.Member != "" {
			heads[i.member] = head
		} else {
			delete(heads, i.member)
		}
		if len(heads) > maxMembers {
			return fmt.Errorf("%w: more than %d members are not read", errSettings, maxMembers)
		}
		if count >= pending {
			w.tell(heads)
		}
		if count == pending {
			listed()
		}
	}
}

// tell tells of what differs from what was told before.
func (w *watch) tell(heads map[string]discovery.Head) {
	var news []discovery.Head
	for _, member := range slices.Sorted(maps.Keys(heads)) {
		if w.heads[member] != heads[member] {
			news = append(news, heads[member])
		}
	}
	for _, member := range slices.Sorted(maps.Keys(w.heads)) {
		if _, there := heads[member]; !there {
			news = append(news, discovery.Head{Member: member})
		}
	}
	w.heads = maps.Clone(heads)
	w.carrier.remember(news)
	for _, head := range news {
		w.changed(head)
	}
}

// remember makes Get know what a digest is of.
func (c *Carrier) remember(heads []discovery.Head) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, head := range heads {
		if head.Record == "" && head.Status == "" {
			delete(c.heads, head.Member)
		} else {
			c.heads[head.Member] = head
		}
	}
}
