package clusterset

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/peer"
)

// round does what is due, and gives how long nothing else will be.
func (l *Loop) round(ctx context.Context) time.Duration {
	told := l.inbox.take()
	if l.takeList(ctx, told.list) {
		return l.timing.Poll
	}
	if told.status != nil {
		l.own.status, l.own.statusDue = told.status, true
	}
	now := l.config.Now()
	l.follow(told.namespaces)
	l.ranges(ctx, now)
	if l.ready(ctx) {
		l.read(ctx, told.heads, now)
		l.publish(ctx, told.exports, now)
	}
	l.keep(ctx, now)
	l.tell(ctx)
	return l.wait(l.config.Now())
}

// ready tells whether the carrier may be asked. Before our own ranges are known
// nothing is read: a peer's endpoint in them could not be told from others.
func (l *Loop) ready(ctx context.Context) bool {
	if l.seen.ranges == nil {
		return false
	}
	if err := l.open(ctx); err != nil {
		l.seen.unread = err
		return false
	}
	return true
}

// takeList follows a new list, and tells whether that takes a fresh start. Then the
// list is kept first: else the next run would begin with the old one, and end the
// same way.
func (l *Loop) takeList(ctx context.Context, list *List) (leaving bool) {
	if list != nil {
		l.next = list
	}
	if l.next == nil {
		return false
	}
	if !l.list.another(*l.next) {
		l.apply(*l.next)
		l.next = nil
		return false
	}
	if err := l.config.Save(ctx, Kept{List: *l.next, Memory: l.peers.Memory()}); err != nil {
		l.seen.unpublished = err
		return false // the next round tries again
	}
	l.config.Restart()
	return true
}

func (l *Loop) follow(namespaces map[string]bool) {
	for name, here := range namespaces {
		l.mu.Lock()
		var out peer.Outcome
		if here {
			out = l.peers.Follow(name)
		} else {
			out = l.peers.Forget(name)
		}
		l.mu.Unlock()
		l.take("", out)
		l.seen.all = true
	}
}

// ranges keeps our own ranges known. A failure leaves those of the time before.
func (l *Loop) ranges(ctx context.Context, now time.Time) {
	if now.Before(l.due.ranges) {
		return
	}
	ranges, err := l.config.Ranges(ctx)
	if err != nil {
		l.seen.unread = fmt.Errorf("own ranges: %w", err)
		l.due.ranges = now.Add(time.Second)
		return
	}
	l.due.ranges = now.Add(rangesEvery)
	if l.seen.ranges != nil && slices.Equal(ranges, l.seen.ranges) {
		return
	}
	l.seen.ranges = append([]netip.Prefix{}, ranges...)
	l.mu.Lock()
	l.peers.SetRanges(ranges)
	services := l.peers.Services()
	l.mu.Unlock()
	l.config.Wake(keys(services)...)
}

// take folds an outcome of the peers into what is to be told and made.
func (l *Loop) take(member string, out peer.Outcome) {
	if member != "" {
		l.seen.touched[member] = true
	}
	for _, event := range out.Events {
		if event.Member != "" {
			l.seen.touched[event.Member] = true
		}
	}
	l.seen.events = append(l.seen.events, out.Events...)
	l.config.Wake(keys(out.Changed)...)
}

// read takes what the carrier has that is new.
func (l *Loop) read(ctx context.Context, told map[string]discovery.Head, now time.Time) {
	for _, head := range told {
		l.readHead(ctx, head)
	}
	if now.Before(l.due.poll) {
		l.readParts(ctx)
		return
	}
	l.due.poll = now.Add(l.timing.Poll)
	for _, head := range l.again {
		l.readHead(ctx, head)
	}
	listed, err := l.poll(ctx)
	l.readParts(ctx)
	l.seen.unread = err
	l.mu.Lock()
	out := l.peers.Contact(listed, l.config.Now())
	l.mu.Unlock()
	l.take("", out)
}

// poll asks the carrier for all heads; where it tells of changes by itself, after
// the first time for our own record only.
func (l *Loop) poll(ctx context.Context) (discovery.Digest, error) {
	ctx, cancel := context.WithTimeout(ctx, exchange)
	defer cancel()
	if l.watch != nil && l.own.known && l.own.problem.Reason == "" {
		return l.back(ctx)
	}
	heads, err := l.carrier.Heads(ctx)
	if err != nil {
		return "", err
	}
	l.doubt()
	var mine discovery.Head
	for _, head := range heads {
		if head.Member == l.list.Cluster {
			mine = head
		}
		l.readHead(ctx, head)
	}
	return mine.Record, l.readOwn(ctx, mine.Record)
}

// doubter is a carrier that knows whose part of it can't be read, and why.
type doubter interface {
	Problems() map[string]error
}

// doubt takes what the carrier says of members whose newest state can't be read:
// their last good one counts.
func (l *Loop) doubt() {
	carrier, ok := l.carrier.(doubter)
	if !ok {
		return
	}
	problems := carrier.Problems()
	for name := range l.seen.doubts {
		l.seen.touched[name] = true
	}
	for name := range problems {
		l.seen.touched[name] = true
	}
	l.seen.doubts = problems
}

// back reads our own record back.
func (l *Loop) back(ctx context.Context) (discovery.Digest, error) {
	if l.own.digest == "" {
		return "", nil
	}
	_, err := l.carrier.Get(ctx, l.list.Cluster, l.own.digest)
	if errors.Is(err, discovery.ErrNotFound) {
		l.own.known = false // wiped, or somebody else's: look at all of it
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return l.own.digest, nil
}

// readOwn looks at what the carrier has under our name, where it is not what we
// put.
func (l *Loop) readOwn(ctx context.Context, listed discovery.Digest) error {
	if l.own.known && listed == l.own.digest {
		return nil
	}
	var sealed []byte
	if listed != "" {
		data, err := l.carrier.Get(ctx, l.list.Cluster, listed)
		if err != nil && !errors.Is(err, discovery.ErrNotFound) {
			return fmt.Errorf("own record: %w", err)
		}
		sealed = data
	}
	l.own.known, l.own.lost = true, listed != l.own.digest
	if sealed == nil {
		l.own.problem = peer.Problem{}
		return nil
	}
	l.mu.Lock()
	sequence, problem := l.peers.TakeOwn(sealed, l.config.Now())
	l.mu.Unlock()
	l.own.sequence, l.own.problem = max(l.own.sequence, sequence), problem
	return nil
}

// readHead takes the record that a head names. What can't be got now is asked for
// again at the next poll.
func (l *Loop) readHead(ctx context.Context, head discovery.Head) {
	l.mu.Lock()
	wanted := l.peers.Wants(head)
	l.mu.Unlock()
	delete(l.again, head.Member)
	if !wanted {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, exchange)
	defer cancel()
	sealed, err := l.carrier.Get(ctx, head.Member, head.Record)
	if err != nil {
		l.again[head.Member] = head
		return
	}
	l.mu.Lock()
	out := l.peers.Take(head.Member, sealed, l.config.Now())
	l.mu.Unlock()
	l.take(head.Member, out)
}

func (l *Loop) readParts(ctx context.Context) {
	l.mu.Lock()
	pending := l.peers.Pending()
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, exchange)
	defer cancel()
	for _, member := range pending {
		l.mu.Lock()
		parts := l.peers.Parts(member)
		l.mu.Unlock()
		for _, digest := range parts {
			data, err := l.carrier.Get(ctx, member, digest)
			if err != nil {
				break // the next round asks again
			}
			l.mu.Lock()
			out := l.peers.TakePart(member, digest, data)
			l.mu.Unlock()
			l.take(member, out)
		}
	}
}

// wait is how long until something is due.
func (l *Loop) wait(now time.Time) time.Duration {
	next := now.Add(l.timing.Poll)
	for _, at := range []time.Time{l.due.poll, l.due.renew, l.due.publish, l.due.status, l.due.ranges} {
		if at.After(now) && at.Before(next) {
			next = at
		}
	}
	return next.Sub(now)
}
