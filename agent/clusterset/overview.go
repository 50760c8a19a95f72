package clusterset

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/peer"
	"github.com/fleetling/fleetling/discovery/record"
)

// Row is one cluster of the list as its own records tell.
type Row struct {
	Cluster string `json:"cluster"`
	// Status is nil where there is none that could be read; Problem says why.
	Status  *record.Status `json:"status,omitempty"`
	Problem string         `json:"problem,omitempty"`
	// Exports are those of its record, as "namespace/name".
	Exports []string `json:"exports,omitempty"`
	// Key is the fingerprint that signed.
	Key string `json:"key,omitempty"`
	// Age is how old the status is by the clocks of both.
	Age time.Duration `json:"-"`
	// Late is that it is older than its lease.
	Late bool `json:"late,omitempty"`
}

// errSilent is that a cluster of the list has put nothing into the registry.
var errSilent = errors.New("nothing in the registry yet")

// Look reads the records of all clusters of the list, in its order. What is wrong
// with one is in its row.
func Look(ctx context.Context, carrier discovery.Carrier, list List, now time.Time) ([]Row, error) {
	heads, err := carrier.Heads(ctx)
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	byName := map[string]discovery.Head{}
	for _, head := range heads {
		byName[head.Member] = head
	}
	rows := make([]Row, 0, len(list.Entries))
	for _, entry := range list.Entries {
		row := Row{Cluster: entry.Name}
		if err := row.read(ctx, carrier, list.ClusterSet, entry, byName[entry.Name], now); err != nil {
			row.Problem = err.Error()
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (r *Row) read(ctx context.Context, carrier discovery.Carrier, clusterSet string, entry peer.Entry, head discovery.Head, now time.Time) error {
	if head.Status == "" {
		return errSilent
	}
	payload, err := r.open(ctx, carrier, record.KindStatus, entry, head.Status)
	if err != nil {
		return err
	}
	status, err := record.DecodeStatus(payload)
	if err != nil {
		return err
	}
	if status.ClusterSet != clusterSet || status.Cluster != entry.Name {
		return fmt.Errorf("its status is of cluster %s in ClusterSet %s", status.Cluster, status.ClusterSet)
	}
	r.Status, r.Age = &status, now.Sub(status.Issued)
	r.Late = r.Age > time.Duration(status.LeaseSeconds)*time.Second
	payload, err = r.open(ctx, carrier, record.KindRecord, entry, head.Record)
	if err != nil {
		return err
	}
	exports, err := record.DecodeRecord(payload)
	if err != nil {
		return err
	}
	for _, e := range exports.Exports {
		r.Exports = append(r.Exports, e.Namespace+"/"+e.Name)
	}
	return nil
}

func (r *Row) open(ctx context.Context, carrier discovery.Carrier, kind record.Kind, entry peer.Entry, digest discovery.Digest) ([]byte, error) {
	sealed, err := carrier.Get(ctx, entry.Name, digest)
	if err != nil {
		return nil, err
	}
	payload, key, err := record.Open(kind, sealed, entry.Keys)
	r.Key = key
	return payload, err
}
