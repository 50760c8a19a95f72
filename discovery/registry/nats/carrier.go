package nats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fleetling/fleetling/discovery"
)

const (
	// digestHeader is the digest of the value, so that heads can be listed without
	// values.
	digestHeader = "Fleetling-Digest"
	// markerTime is how long the mark of a key that was taken out stays: longer
	// than any watcher is away without listing again.
	markerTime = time.Hour
	// headerRoom is what our headers take of a message's size, in bytes.
	headerRoom = 256
	// lagTime is how long another server of the cluster may be behind.
	lagTime = 500 * time.Millisecond
)

// errSettings is that the bucket is not made as this package needs it.
var errSettings = errors.New("the bucket's settings")

// Carrier is one member's side of a bucket. It is safe for concurrent use.
type Carrier struct {
	options Options
	conn    *nats.Conn
	js      jetstream.JetStream
	putting sync.Mutex // one Put after the other

	mu      sync.Mutex
	waiting map[int]context.CancelCauseFunc
	last    int
	heads   map[string]discovery.Head // by member, as listed or told of last
}

var (
	_ discovery.Carrier = (*Carrier)(nil)
	_ discovery.Watcher = (*Carrier)(nil)
)

// Open starts to connect, and does not wait for it. The caller closes the carrier.
func Open(options Options) (*Carrier, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	c := &Carrier{options: options, waiting: map[int]context.CancelCauseFunc{}, heads: map[string]discovery.Head{}}
	var err error
	if c.conn, err = options.connect(c.onError); err != nil {
		return nil, err
	}
	if c.js, err = jetstream.New(c.conn); err != nil {
		c.conn.Close()
		return nil, fmt.Errorf("registry: %w", err)
	}
	return c, nil
}

// Close ends the connection.
func (c *Carrier) Close() { c.conn.Close() }

// Put is discovery.Carrier's. Parts come first and old parts go last, so that what
// a record names is there as long as the record is. What is there already is asked
// for, and not sent again.
func (c *Carrier) Put(ctx context.Context, own discovery.Own) error {
	values, err := c.valuesOf(own)
	if err != nil {
		return fmt.Errorf("put %s: %w", c.options.Member, err)
	}
	c.putting.Lock()
	defer c.putting.Unlock()
	if err := c.replace(ctx, values); err != nil {
		return fmt.Errorf("put %s: %w", c.options.Member, err)
	}
	return nil
}

// replace writes parts, record, status, and takes out what is not wanted.
func (c *Carrier) replace(ctx context.Context, values map[string][]byte) error {
	to, err := c.target(ctx)
	if err == nil {
		err = to.check(values)
	}
	if err != nil {
		return err
	}
	there, err := c.own(ctx)
	if err != nil {
		return err
	}
	for _, key := range slices.SortedFunc(maps.Keys(values), partsFirst) {
		if there[key] == discovery.DigestOf(values[key]) {
			continue
		}
		if err := c.write(ctx, to, key, values[key]); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(there)) {
		if _, wanted := values[key]; wanted {
			continue
		}
		if err := c.takeOut(ctx, to, key); err != nil {
			return err
		}
	}
	return nil
}

func (c *Carrier) write(ctx context.Context, to target, key string, value []byte) error {
	m := nats.NewMsg(to.prefix + c.options.Member + "." + key)
	m.Data = value
	m.Header.Set(digestHeader, string(discovery.DigestOf(value)))
	return c.publish(ctx, key, m)
}

// takeOut writes the mark that KV clients know, which goes by itself. The bucket
// keeps one message of a key, so the value goes with it.
func (c *Carrier) takeOut(ctx context.Context, to target, key string) error {
	m := nats.NewMsg(to.prefix + c.options.Member + "." + key)
	m.Header.Set(operationHeader, "DEL")
	m.Header.Set(jetstream.MsgTTLHeader, markerTime.String())
	return c.publish(ctx, key, m)
}

func (c *Carrier) publish(ctx context.Context, key string, m *nats.Msg) error {
	err := c.call(ctx, func(ctx context.Context) error {
		_, err := c.js.PublishMsg(ctx, m)
		return err
	})
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		return fmt.Errorf("%s: no server of this side takes it: the bucket's own servers can't be reached, or have lost their majority: %w", key, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// Heads is discovery.Carrier's.
func (c *Carrier) Heads(ctx context.Context) ([]discovery.Head, error) {
	items, err := c.list(ctx, 2*maxMembers, c.subject("*", recordKey), c.subject("*", statusKey))
	if err != nil {
		return nil, fmt.Errorf("heads: %w", err)
	}
	byMember := map[string]discovery.Head{}
	for _, i := range items {
		if head := i.onto(byMember[i.member]); head.Member != "" {
			byMember[i.member] = head
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heads = maps.Clone(byMember)
	var heads []discovery.Head
	for _, member := range slices.Sorted(maps.Keys(byMember)) {
		heads = append(heads, byMember[member])
	}
	return heads, nil
}

// Get is discovery.Carrier's. It reads the key that should hold the digest.
func (c *Carrier) Get(ctx context.Context, member string, digest discovery.Digest) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("get %.60q: %w", member, err)
	}
	hex, ok := hexOf(digest)
	if !ok || !isName(member) {
		return nil, fmt.Errorf("get %.80q of %.60q: %w", digest, member, discovery.ErrNotFound)
	}
	data, err := c.find(ctx, member, digest, c.keysFor(member, digest, hex))
	if err != nil {
		return nil, fmt.Errorf("get %s of %s: %w", digest, member, err)
	}
	return data, nil
}

// find waits a little for a server that is behind the others, where the digest has
// been listed.
func (c *Carrier) find(ctx context.Context, member string, digest discovery.Digest, keys []string) ([]byte, error) {
	until := time.Now()
	if len(keys) == 1 {
		until = until.Add(lagTime)
	}
	pause := newBackOff()
	for {
		for _, key := range keys {
			data, err := c.read(ctx, member, key)
			if err != nil && !errors.Is(err, discovery.ErrNotFound) {
				return nil, err
			}
			if err == nil && discovery.DigestOf(data) == digest {
				return data, nil
			}
		}
		wait := pause.NextBackOff()
		if time.Now().Add(wait).After(until) {
			return nil, discovery.ErrNotFound
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// keysFor are the keys that may hold a digest: only one where it is known what it
// is of.
func (c *Carrier) keysFor(member string, digest discovery.Digest, hex string) []string {
	c.mu.Lock()
	head := c.heads[member]
	c.mu.Unlock()
	switch digest {
	case head.Record:
		return []string{recordKey}
	case head.Status:
		return []string{statusKey}
	default:
		return []string{partKey + hex, recordKey, statusKey}
	}
}

// read gives the value of a key.
func (c *Carrier) read(ctx context.Context, member, key string) (data []byte, _ error) {
	err := c.call(ctx, func(ctx context.Context) error {
		stream, err := c.stream(ctx)
		if err != nil {
			return err
		}
		m, err := stream.GetLastMsgForSubject(ctx, c.subject(member, key))
		if err != nil {
			return err
		}
		if m.Header.Get(operationHeader) != "" {
			return jetstream.ErrMsgNotFound
		}
		data = m.Data
		return nil
	})
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, discovery.ErrNotFound
	case err != nil:
		return nil, err
	case len(data) > maxValue:
		return nil, fmt.Errorf("%s: has %d bytes, more than %d are not read", key, len(data), maxValue)
	}
	return data, nil
}
