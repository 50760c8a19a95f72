package nats

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fleetling/fleetling/discovery"
)

const (
	recordKey = "record"
	statusKey = "status"
	partKey   = "part."

	operationHeader = "KV-Operation" // ADR-8 of NATS: what was done to a key but writing it
)

// subject is where a key's messages are (ADR-8 of NATS).
func (c *Carrier) subject(member, key string) string { return c.prefix() + member + "." + key }

func (c *Carrier) prefix() string { return "$KV." + c.options.Bucket + "." }

func (c *Carrier) streamName() string { return "KV_" + c.options.Bucket }

// stream asks for the bucket and looks at its settings.
func (c *Carrier) stream(ctx context.Context) (jetstream.Stream, error) {
	stream, err := c.js.Stream(ctx, c.streamName())
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", c.options.Bucket, err)
	}
	config := stream.CachedInfo().Config
	switch {
	case config.MaxMsgsPerSubject != 1:
		return nil, fmt.Errorf("%w: %s keeps %d values of a key: make it with --history=1", errSettings, c.options.Bucket, config.MaxMsgsPerSubject)
	case !config.AllowDirect:
		return nil, fmt.Errorf("%w: %s must allow direct reads", errSettings, c.options.Bucket)
	case !config.AllowMsgTTL:
		return nil, fmt.Errorf("%w: %s would keep the mark of every key that was taken out: make it with --marker-ttl=1h", errSettings, c.options.Bucket)
	}
	return stream, nil
}

// valuesOf gives the value of each key of a member, within what the bucket takes
// and others read.
func (c *Carrier) valuesOf(own discovery.Own) (map[string][]byte, error) {
	values := map[string][]byte{}
	if own.Record != nil {
		values[recordKey] = own.Record
	}
	if own.Status != nil {
		values[statusKey] = own.Status
	}
	for digest, part := range own.Parts {
		hex, ok := hexOf(digest)
		if !ok || discovery.DigestOf(part) != digest {
			return nil, fmt.Errorf("part %.80q: it is not the digest of its bytes", digest)
		}
		values[partKey+hex] = part
	}
	if len(own.Parts) > maxParts {
		return nil, fmt.Errorf("%d parts, more than %d are not read by others: export less", len(own.Parts), maxParts)
	}
	for key, value := range values {
		if len(value) > maxValue {
			return nil, fmt.Errorf("%s: has %d bytes, more than %d are not read by others", key, len(value), maxValue)
		}
	}
	return values, nil
}

// target is where this member's keys are written.
type target struct {
	prefix string // of subjects
	limit  int64  // of a message, in bytes
}

// target asks where to write. What is written to a mirror goes to the bucket that
// it mirrors, by the subject that the other domain has for it.
func (c *Carrier) target(ctx context.Context) (t target, _ error) {
	err := c.call(ctx, func(ctx context.Context) error {
		stream, err := c.stream(ctx)
		if err != nil {
			return err
		}
		config := stream.CachedInfo().Config
		t = target{prefix: c.prefix(), limit: c.conn.MaxPayload()}
		if m := config.Mirror; m != nil && m.External != nil && m.External.APIPrefix != "" {
			t.prefix = m.External.APIPrefix + "." + t.prefix
		}
		if own := int64(config.MaxMsgSize); own > 0 {
			t.limit = min(t.limit, own)
		}
		return nil
	})
	return t, err
}

// check says what the bucket would not take, before anything is sent.
func (t target) check(values map[string][]byte) error {
	for key, value := range values {
		if size := int64(len(value) + headerRoom); size > t.limit {
			return fmt.Errorf("%w: %s has %d bytes with its headers, the bucket takes %d: raise its --max-value-size, and max_payload of the servers", errSettings, key, size, t.limit)
		}
	}
	return nil
}

// partsFirst orders keys by when they are written.
func partsFirst(a, b string) int {
	rank := func(key string) int {
		switch key {
		case recordKey:
			return 1
		case statusKey:
			return 2
		default:
			return 0
		}
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

func hexOf(digest discovery.Digest) (string, bool) {
	text, ok := strings.CutPrefix(string(digest), "sha256:")
	raw, err := hex.DecodeString(text)
	return text, ok && err == nil && len(raw) == 32 && hex.EncodeToString(raw) == text
}
