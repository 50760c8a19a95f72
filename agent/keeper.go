package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/fleetling/fleetling/sources"
)

// keeper holds the pin and the snapshot, in memory and in the cluster. Both
// loops use it.
type keeper struct {
	pins      *pins
	snapshots snapshots
	// cluster gives the UID of this cluster; nil is not asked.
	cluster func(context.Context) (string, error)

	mu     sync.Mutex
	uid    string
	loaded bool
	pin    *pin
	// kept are the contents that the snapshot of the pin holds.
	kept []content
	// lost says why there is no snapshot, or nil.
	lost error
}

// current gives the pin, read from the cluster the first time. Nil is no pin.
func (k *keeper) current(ctx context.Context) (*pin, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.load(ctx); err != nil {
		return nil, err
	}
	return k.pin, nil
}

// restore gives the contents of the snapshot, and why it can't be used.
func (k *keeper) restore(ctx context.Context) ([]content, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.load(ctx); err != nil {
		return nil, err
	}
	return k.kept, nil
}

func (k *keeper) load(ctx context.Context) error {
	if k.loaded {
		return nil
	}
	if err := k.ask(ctx); err != nil {
		return err
	}
	loaded, err := k.pins.load(ctx)
	if err != nil {
		return err
	}
	if loaded != nil && loaded.Cluster != "" && loaded.Cluster != k.uid {
		return errOfAnother(loaded.Cluster, k.uid)
	}
	var kept []content
	if loaded != nil && loaded.Snapshot != "" {
		kept, err = k.snapshots.load(ctx, loaded.Snapshot)
		if err != nil && !errors.Is(err, errSnapshotMissing) {
			return err
		}
		k.lost = err
	}
	k.pin, k.kept, k.loaded = loaded, kept, true
	return nil
}

// ask learns which cluster this is.
func (k *keeper) ask(ctx context.Context) (err error) {
	if k.cluster == nil {
		return nil
	}
	k.uid, err = k.cluster(ctx)
	return err
}

// errOfAnother holds everything: what a backup of another cluster has brought
// here says nothing of this one.
func errOfAnother(its, ours string) error {
	return &sources.Error{
		Reason: sources.IdentityDiffers,
		Err: fmt.Errorf("ConfigMap %s/%s is of another cluster (UID %s of its namespace kube-system, here %s), as from a backup: delete it to have the agent introduced here",
			Namespace, pinName, its, ours),
	}
}

// forget makes the next look read the cluster: somebody deleted the pin.
func (k *keeper) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loaded = false
}

// another is a keeper of the same, that remembers for itself.
func (k *keeper) another() *keeper {
	return &keeper{pins: &pins{client: k.pins.client}, snapshots: k.snapshots, cluster: k.cluster}
}

// keep writes what has changed, the snapshot first: until the pin names the new
// one, the old one counts.
func (k *keeper) keep(ctx context.Context, next pin, active []content) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.load(ctx); err != nil {
		return err
	}
	var current pin
	if k.pin != nil {
		current = *k.pin
	}
	next.Snapshot, next.Cluster = current.Snapshot, k.uid
	fresh := !sameContents(k.kept, active) || (k.lost != nil && !errors.Is(k.lost, errSnapshotTooLarge))
	if fresh {
		digest, err := k.keepSnapshot(ctx, current.Snapshot, active)
		if err != nil {
			return err
		}
		next.Snapshot = digest
	}
	if k.pin == nil || !reflect.DeepEqual(next, current) {
		if err := k.pins.save(ctx, next); err != nil {
			k.loaded = false
			return err
		}
		k.pin = &next
	}
	if !fresh {
		return nil
	}
	k.kept = active
	return k.snapshots.sweep(ctx, next.Snapshot)
}

// keepSnapshot gives the digest of the snapshot that counts from now on; "" for
// none, where it is too large.
func (k *keeper) keepSnapshot(ctx context.Context, current string, active []content) (string, error) {
	data, digest, err := pack(active)
	if err != nil {
		return "", err
	}
	err = k.snapshots.save(ctx, data, digest, current)
	switch {
	case errors.Is(err, errSnapshotTooLarge):
		k.lost = fmt.Errorf("%d KiB: %w", len(data)>>10, err)
		return "", nil
	case err != nil:
		return "", err
	}
	k.lost = nil
	return digest, nil
}

// snapshotProblem says why what is rolled out is not kept, or nil.
func (k *keeper) snapshotProblem() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lost
}
