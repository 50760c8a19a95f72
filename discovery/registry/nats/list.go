package nats

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fleetling/fleetling/discovery"
)

const (
	// pageSize is how many keys are asked for at once.
	pageSize = 500
	// consumerTime is how long the server remembers a reader that was lost.
	consumerTime = 10 * time.Second
)

// item is the newest message of a key, without its value.
type item struct {
	member, key string
	digest      discovery.Digest // "" where the key was taken out
}

// onto puts a record or a status into its member's head. A head without both is
// the zero Head.
func (i item) onto(head discovery.Head) discovery.Head {
	head.Member = i.member
	switch i.key {
	case recordKey:
		head.Record = i.digest
	case statusKey:
		head.Status = i.digest
	}
	if head.Record == "" && head.Status == "" {
		return discovery.Head{}
	}
	return head
}

// own lists the keys of this member that have a value.
func (c *Carrier) own(ctx context.Context) (map[string]discovery.Digest, error) {
	items, err := c.list(ctx, 2*maxParts, c.subject(c.options.Member, ">"))
	if err != nil {
		return nil, err
	}
	keys := map[string]discovery.Digest{}
	for _, i := range items {
		if i.digest != "" {
			keys[i.key] = i.digest
		}
	}
	return keys, nil
}

// list gives all keys of some subjects, or an error: never some of them.
func (c *Carrier) list(ctx context.Context, limit int, subjects ...string) (items []item, _ error) {
	err := c.call(ctx, func(ctx context.Context) (err error) {
		items, err = c.listOnce(ctx, limit, subjects)
		return err
	})
	if err != nil {
		return nil, err
	}
	return items, nil
}

func (c *Carrier) listOnce(ctx context.Context, limit int, subjects []string) ([]item, error) {
	reader, err := c.reader(ctx, subjects)
	if err != nil {
		return nil, err
	}
	defer c.forget(ctx, reader)
	pending := int(reader.CachedInfo().NumPending)
	if pending > limit {
		return nil, fmt.Errorf("%w: %d keys, more than %d are not read", errSettings, pending, limit)
	}
	var items []item
	for len(items) < pending {
		page, err := reader.Fetch(min(pageSize, pending-len(items)), jetstream.FetchContext(ctx))
		if err != nil {
			return nil, err
		}
		before := len(items)
		for m := range page.Messages() {
			i, err := c.itemOf(ctx, m)
			if err != nil {
				return nil, err
			}
			items = append(items, i)
		}
		if err := page.Error(); err != nil {
			return nil, err
		}
		if len(items) == before {
			return nil, fmt.Errorf("%d of %d keys came", before, pending)
		}
	}
	return items, nil
}

// forget spares the server a reader that is not read from any more: it has a limit.
// Where that fails, the server forgets it by time.
func (c *Carrier) forget(ctx context.Context, reader jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTime)
	defer cancel()
	_ = c.js.DeleteConsumer(ctx, c.streamName(), reader.CachedInfo().Name)
}

// reader is made for one reading. It gives the newest
// message of each key, without values, and then each new one.
func (c *Carrier) reader(ctx context.Context, subjects []string) (jetstream.Consumer, error) {
	stream, err := c.stream(ctx)
	if err != nil {
		return nil, err
	}
	return stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		FilterSubjects: subjects, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckNonePolicy,
		HeadersOnly: true, MemoryStorage: true, Replicas: 1, InactiveThreshold: consumerTime,
	})
}

// itemOf reads the headers of a message. One that was not written by this package
// has no digest there: its value is read.
func (c *Carrier) itemOf(ctx context.Context, m jetstream.Msg) (item, error) {
	member, key, _ := strings.Cut(strings.TrimPrefix(m.Subject(), c.prefix()), ".")
	i := item{member: member, key: key}
	header := m.Headers()
	if header.Get(operationHeader) != "" || header.Get(jetstream.MarkerReasonHeader) != "" || !isName(member) {
		return i, nil
	}
	i.digest = discovery.Digest(header.Get(digestHeader))
	if _, ok := hexOf(i.digest); ok {
		return i, nil
	}
	stream, err := c.stream(ctx)
	if err != nil {
		return i, err
	}
	value, err := stream.GetLastMsgForSubject(ctx, m.Subject())
	if err != nil {
		return i, err
	}
	i.digest = discovery.DigestOf(value.Data)
	return i, nil
}
