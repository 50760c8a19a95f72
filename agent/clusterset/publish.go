package clusterset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/mcs"
	"github.com/fleetling/fleetling/discovery/peer"
	"github.com/fleetling/fleetling/discovery/record"
)

// own is what this cluster has in the carrier.
type own struct {
	// known is that the carrier's own head was looked at; lost that it is not what
	// we put; problem why nothing may be put.
	known, lost bool
	problem     peer.Problem
	sequence    uint64
	// digest is of the sealed record that was put last, content of what it says.
	digest, content discovery.Digest
	// dirty is that the exports may have changed since, statusDue that the status
	// has.
	dirty, statusDue bool
	status           *record.Status
	failures         int
	// at is when something was put last.
	at time.Time
}

// Why nothing is published. The texts say what to do.
var (
	errNotListed = errors.New("this cluster has no entry in the cluster list: nothing is published until it has one")
	errNoKey     = errors.New("the entry of this cluster does not have its member key: put the line of Member's status.memberKey into its annotation fleetling.dev/member-keys")
)

// publish puts what is due: changed exports, a renewal, or what the carrier lost.
func (l *Loop) publish(ctx context.Context, changed bool, now time.Time) {
	if changed {
		l.own.dirty = true
	}
	if now.Before(l.due.publish) || !l.own.known {
		return
	}
	if !l.own.dirty && !l.own.lost && now.Before(l.due.renew) {
		if !l.own.statusDue {
			return
		}
		// What only people read comes in bursts, and can wait for the rest of them.
		if next := l.own.at.Add(l.timing.Poll); now.Before(next) {
			l.due.status = next
			return
		}
	}
	if err := l.put(ctx, now); err != nil {
		l.seen.unpublished = err
		l.own.failures++
		l.due.publish = now.Add(min(time.Second<<min(l.own.failures, 5), l.timing.Renew))
		return
	}
	l.seen.unpublished, l.own.failures, l.due.publish = nil, 0, time.Time{}
}

// may tells why nothing may be published.
func (l *Loop) may() error {
	entry, listed := l.list.own()
	switch {
	case !listed:
		return errNotListed
	case !slices.Contains(entry.Keys, l.config.Key.Public()):
		return errNoKey
	case l.own.problem.Reason != "":
		return problemError{l.own.problem}
	}
	return nil
}

func (l *Loop) put(ctx context.Context, now time.Time) error {
	if err := l.may(); err != nil {
		return err
	}
	shares, err := l.config.Exports(ctx)
	if err != nil {
		return err
	}
	next, parts := l.record(shares, now)
	content := next.Content()
	renew := l.own.lost || !now.Before(l.due.renew)
	if content == l.own.content && !l.own.statusDue && !renew {
		l.own.dirty = false
		return nil
	}
	sealed, err := l.seal(next, now)
	if err != nil {
		return err
	}
	sealed.Parts = parts
	l.own.digest = discovery.DigestOf(sealed.Record)
	l.mu.Lock()
	l.peers.Published(l.own.digest) // also where putting fails half-way
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, exchange)
	defer cancel()
	if err := l.carrier.Put(ctx, sealed); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	l.own.content, l.own.dirty, l.own.statusDue, l.own.lost = content, false, false, false
	l.due.renew, l.own.at = now.Add(l.timing.Renew), now
	l.announce(shares)
	return nil
}

// record makes the next record out of the own shares, and the parts that it names.
// An export that no record can hold is left out, and said.
func (l *Loop) record(shares []mcs.Share, now time.Time) (record.Record, map[discovery.Digest][]byte) {
	parts := map[discovery.Digest][]byte{}
	r := record.Record{
		Schema: record.Schema, ClusterSet: l.list.ClusterSet, Cluster: l.list.Cluster, ClusterUID: l.config.UID,
		Sequence: record.NextSequence(l.own.sequence, l.own.sequence, now), Issued: now.UTC().Truncate(time.Millisecond),
		LeaseSeconds: int(l.timing.Lease / time.Second),
	}
	var left []error
	for _, share := range shares {
		export, err := l.export(r, share, parts)
		if err != nil {
			left = append(left, fmt.Errorf("export %s is left out: %w", share.Key(), err))
			continue
		}
		r.Exports = append(r.Exports, export)
	}
	l.seen.left = errors.Join(left...)
	return r, parts
}

// export makes one export, and adds its parts. Alone in a record it must be sound.
func (l *Loop) export(r record.Record, share mcs.Share, parts map[discovery.Digest][]byte) (record.Export, error) {
	export, own := share.Export, map[discovery.Digest][]byte{}
	export.Parts = nil
	for _, slice := range share.Slices {
		part, err := slice.Encode()
		if err != nil {
			return record.Export{}, err
		}
		digest := discovery.DigestOf(part)
		own[digest] = part
		export.Parts = append(export.Parts, digest)
	}
	r.Exports = []record.Export{export}
	if _, err := r.Encode(); err != nil {
		return record.Export{}, err
	}
	maps.Copy(parts, own)
	return export, nil
}

func (l *Loop) seal(r record.Record, now time.Time) (discovery.Own, error) {
	payload, err := r.Encode()
	if err != nil {
		return discovery.Own{}, fmt.Errorf("own record: %w", err)
	}
	l.own.sequence = r.Sequence
	var out discovery.Own
	if out.Record, err = record.Seal(record.KindRecord, payload, l.config.Key); err != nil {
		return discovery.Own{}, fmt.Errorf("own record: %w", err)
	}
	if l.own.status == nil {
		return out, nil
	}
	status := *l.own.status
	status.Schema, status.ClusterSet, status.Cluster = record.Schema, r.ClusterSet, r.Cluster
	status.Sequence, status.Issued, status.LeaseSeconds, status.Exports = r.Sequence, now.UTC().Truncate(time.Millisecond), r.LeaseSeconds, len(r.Exports)
	if payload, err = status.Encode(); err != nil {
		return discovery.Own{}, fmt.Errorf("own status: %w", err)
	}
	if out.Status, err = record.Seal(record.KindStatus, payload, l.config.Key); err != nil {
		return discovery.Own{}, fmt.Errorf("own status: %w", err)
	}
	return out, nil
}

// announce notes what is published, and has the conditions of the exports say so.
func (l *Loop) announce(shares []mcs.Share) {
	next := map[types.NamespacedName]discovery.Digest{}
	for _, share := range shares {
		next[share.Key()] = exportDigest(share.Export)
	}
	l.mu.Lock()
	var changed []types.NamespacedName
	for key, digest := range next {
		if l.published[key] != digest {
			changed = append(changed, key)
		}
	}
	for key := range l.published {
		if _, still := next[key]; !still {
			changed = append(changed, key)
		}
	}
	l.published = next
	l.mu.Unlock()
	l.config.Wake(changed...)
}

// exportDigest is of what an export says but for its endpoints.
func exportDigest(e record.Export) discovery.Digest {
	e.Parts = nil
	data, _ := json.Marshal(e) // plain data: it can always be encoded
	return discovery.DigestOf(data)
}

// problemError is a problem of the peers as an error.
type problemError struct{ peer.Problem }

func (p problemError) Error() string { return p.Message }
