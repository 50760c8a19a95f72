package peer

import (
	"maps"
	"reflect"
	"slices"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/record"
)

// export is one export in a namespace that exists here.
type export struct {
	// current is what is shared, with all its parts; nil is nothing yet.
	current *record.Export
	// next is what the record says, while parts of it are missing; nil is that
	// current is it. Until then current stays: whoever hides a part can't take
	// endpoints away.
	next *record.Export
	// refused is that next has all its parts, and they are too much.
	refused bool
}

func (e *export) latest() *record.Export {
	if e.next != nil {
		return e.next
	}
	return e.current
}

// load brings the exports of a member in line with its record.
func (p *Peers) load(m *member, r record.Record, out *Outcome) {
	listed := map[Service]struct{}{}
	for _, said := range r.Exports {
		if _, exists := p.namespaces[said.Namespace]; !exists {
			continue
		}
		service := Service{said.Namespace, said.Name}
		listed[service] = struct{}{}
		e := m.exports[service]
		if e == nil {
			e = &export{}
			m.exports[service] = e
		}
		e.next, e.refused = nil, false
		if e.current == nil || !reflect.DeepEqual(*e.current, said) {
			e.next = &said
		}
	}
	for service := range m.exports {
		if _, stays := listed[service]; !stays {
			delete(m.exports, service)
			p.unshare(service, m.entry.Name)
			out.change(service)
		}
	}
	p.promote(m, out)
}

// promote shares what has all its parts, and forgets parts that nothing names.
func (p *Peers) promote(m *member, out *Outcome) {
	stuck := false
	delete(p.pending, m.entry.Name)
	for _, service := range slices.SortedFunc(maps.Keys(m.exports), compareServices) {
		e := m.exports[service]
		if e.next == nil {
			continue
		}
		if !e.refused && m.has(e.next) {
			p.share(m, service, e, out)
		} else if len(m.missing(e.next)) > 0 {
			p.pending[m.entry.Name] = struct{}{}
		}
		stuck = stuck || e.refused || slices.ContainsFunc(e.latest().Parts, func(d discovery.Digest) bool { return has(m.bad, d) })
	}
	if !stuck {
		m.partProblem = Problem{}
	}
	m.forgetParts()
}

func (m *member) forgetParts() {
	named := map[discovery.Digest]struct{}{}
	for _, e := range m.exports {
		for _, version := range []*record.Export{e.current, e.next} {
			if version != nil {
				mark(named, version.Parts)
			}
		}
	}
	maps.DeleteFunc(m.parts, func(d discovery.Digest, _ record.Slice) bool { return !has(named, d) })
	maps.DeleteFunc(m.bad, func(d discovery.Digest, _ struct{}) bool { return !has(named, d) })
}

func (p *Peers) share(m *member, service Service, e *export, out *Outcome) {
	count := 0
	for _, part := range e.next.Parts {
		count += len(m.parts[part].Endpoints)
	}
	if count > record.MaxEndpoints {
		e.refused = true
		m.refusePart(problem(TooLarge, "export %s/%s of %s has %d endpoints, at most %d are taken: the last good ones stay",
			service.Namespace, service.Name, m.entry.Name, count, record.MaxEndpoints), out)
		return
	}
	e.current, e.next = e.next, nil
	out.change(service)
	if p.exporters[service] == nil {
		p.exporters[service] = map[string]struct{}{}
	}
	p.exporters[service][m.entry.Name] = struct{}{}
}

func (p *Peers) unshare(service Service, name string) {
	delete(p.exporters[service], name)
	if len(p.exporters[service]) == 0 {
		delete(p.exporters, service)
	}
}

// Pending are the members of which parts are wanted, sorted.
func (p *Peers) Pending() []string { return sortedKeys(p.pending) }

// Parts are the digests of the parts of a member that are wanted, sorted.
func (p *Peers) Parts(name string) []discovery.Digest {
	m := p.members[name]
	if m == nil {
		return nil
	}
	wanted := map[discovery.Digest]struct{}{}
	for _, e := range m.exports {
		if e.next != nil {
			mark(wanted, m.missing(e.next))
		}
	}
	return sortedKeys(wanted)
}

// TakePart takes the bytes that were got for a wanted part.
func (p *Peers) TakePart(name string, digest discovery.Digest, data []byte) Outcome {
	var out Outcome
	m := p.members[name]
	if m == nil || !slices.Contains(p.Parts(name), digest) {
		return out
	}
	if discovery.DigestOf(data) != digest {
		// The carrier's fault, not the member's: the part is still wanted.
		out.Problem = problem(Malformed, "the registry gives other bytes for part %s of %s", digest, name)
		return out
	}
	slice, err := record.DecodeSlice(data)
	if err == nil && m.endpoints()+len(slice.Endpoints) > record.MaxClusterEndpoints {
		err = record.ErrTooLarge
	}
	if err != nil {
		if m.bad == nil {
			m.bad = map[discovery.Digest]struct{}{}
		}
		m.bad[digest] = struct{}{}
		m.refusePart(problem(reasonOf(err), "part %s of %s can't be taken (%v): the last good endpoints stay", digest, name, err), &out)
	} else {
		if m.parts == nil {
			m.parts = map[discovery.Digest]record.Slice{}
		}
		m.parts[digest] = slice
	}
	p.promote(m, &out)
	return out
}

func (m *member) refusePart(wrong Problem, out *Outcome) {
	if m.partProblem != wrong {
		out.tell(warning(m.entry.Name, wrong))
	}
	m.partProblem, out.Problem = wrong, wrong
}

// endpoints counts those of the latest versions only: while all parts of a large
// member change, both are held.
func (m *member) endpoints() int {
	latest := map[discovery.Digest]struct{}{}
	for _, e := range m.exports {
		mark(latest, e.latest().Parts)
	}
	count := 0
	for digest := range latest {
		count += len(m.parts[digest].Endpoints)
	}
	return count
}

func (m *member) has(e *record.Export) bool {
	return !slices.ContainsFunc(e.Parts, func(d discovery.Digest) bool { return !has(m.parts, d) })
}

// missing are the parts that are wanted: neither held nor refused.
func (m *member) missing(e *record.Export) []discovery.Digest {
	var all []discovery.Digest
	for _, digest := range e.Parts {
		if !has(m.parts, digest) && !has(m.bad, digest) {
			all = append(all, digest)
		}
	}
	return all
}
