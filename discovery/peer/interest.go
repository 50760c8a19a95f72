package peer

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"slices"
	"unique"

	"github.com/fleetling/fleetling/discovery/record"
)

// Follow is that a namespace exists here: exports in it are imported. It costs
// the members that export it, and needs the carrier for their parts only.
func (p *Peers) Follow(namespace string) Outcome {
	var out Outcome
	if has(p.namespaces, namespace) {
		return out
	}
	p.namespaces[namespace] = struct{}{}
	for _, m := range p.exporting(namespace) {
		r, err := reread(m.raw)
		if err != nil {
			// Nothing but this process has written it; the carrier has it too.
			m.head, m.payload, m.content = "", "", ""
			continue
		}
		p.load(m, r, &out)
	}
	return out
}

// Forget is that a namespace exists here no longer.
func (p *Peers) Forget(namespace string) Outcome {
	var out Outcome
	delete(p.namespaces, namespace)
	for _, m := range p.exporting(namespace) {
		for service := range m.exports {
			if service.Namespace == namespace {
				delete(m.exports, service)
				p.unshare(service, m.entry.Name)
				out.change(service)
			}
		}
		p.promote(m, &out)
	}
	return out
}

func (p *Peers) exporting(namespace string) []*member {
	var all []*member
	for _, name := range sortedKeys(p.members) {
		if _, found := slices.BinarySearch(p.members[name].exported, namespace); found {
			all = append(all, p.members[name])
		}
	}
	return all
}

// namespacesOf gives each name once for all members: they export the same ones.
func namespacesOf(r record.Record) []string {
	var all []string
	for _, export := range r.Exports {
		all = append(all, unique.Make(export.Namespace).Value())
	}
	slices.Sort(all)
	return slices.Clip(slices.Compact(all))
}

// packer keeps the tables of deflate, which are some 100 times a record.
type packer struct{ writer *flate.Writer }

func (k *packer) deflate(payload []byte) []byte {
	var packed bytes.Buffer
	// Nothing here can fail: the level is known, and a buffer takes all.
	if k.writer == nil {
		k.writer, _ = flate.NewWriter(&packed, flate.BestSpeed)
	}
	k.writer.Reset(&packed)
	_, _ = k.writer.Write(payload)
	_ = k.writer.Close()
	return bytes.Clone(packed.Bytes())
}

func reread(raw []byte) (record.Record, error) {
	payload, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(raw)), record.MaxSealed))
	if err != nil {
		return record.Record{}, fmt.Errorf("stored record: %w", err)
	}
	return record.DecodeRecord(payload)
}
