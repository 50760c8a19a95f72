package peer

import (
	"cmp"
	"maps"
	"slices"
)

// maxRefusals is how many refusals are told of one by one, as in status fields.
const maxRefusals = 5

// View is what a person sees of a peer. It has nothing in it that a renewal
// changes.
type View struct {
	Name  string
	State State
	// Late is that its endpoints are not ready.
	Late bool
	// Problem is what is wrong with its entry, its record or a part; the first of
	// these. Overlap is where ranges overlap and this entry is the one imported.
	Problem, Overlap Problem
	// Exports counts those of the record, Imported those that are shared here,
	// Pending the parts that are missing.
	Exports, Imported, Pending int
	// RefusedExports and RefusedEndpoints count what is not taken of a good
	// record; Refused are the first five of them.
	RefusedExports, RefusedEndpoints int
	Refused                          []Problem
}

// Names are those of the peers, sorted.
func (p *Peers) Names() []string { return sortedKeys(p.members) }

// View gives the view of a peer; false where there is none of this name. It costs
// that peer's endpoints.
func (p *Peers) View(name string) (View, bool) {
	m := p.members[name]
	if m == nil {
		return View{}, false
	}
	v := View{
		Name: name, State: m.state, Late: m.notReady, Overlap: m.overlap,
		Problem: cmp.Or(m.blocked, m.problem, m.partProblem),
		Exports: m.total, Pending: len(p.Parts(name)),
	}
	if len(m.entry.Keys) == 0 && m.blocked.Reason == "" {
		v.Problem = checkKeys(&claim{member: m})
	}
	for _, service := range slices.SortedFunc(maps.Keys(m.exports), compareServices) {
		p.addTo(&v, m, service)
	}
	return v, true
}

func (p *Peers) addTo(v *View, m *member, service Service) {
	if refusal := p.policy.Refuses(m.entry.Name, service.Namespace); refusal != "" {
		v.RefusedExports++
		v.refuse(problem(NamespaceRefused, "%s/%s: %s", service.Namespace, service.Name, refusal))
		return
	}
	e := m.exports[service]
	if e.current == nil || m.blocked.Reason != "" {
		return
	}
	v.Imported++
	for _, digest := range e.current.Parts {
		_, refused := p.contain(m, m.parts[digest])
		v.RefusedEndpoints += len(refused)
		for _, endpoint := range refused {
			v.refuse(problem(endpoint.reason, "%s/%s: endpoint %s of %s is not taken", service.Namespace, service.Name, endpoint.address, v.Name))
		}
	}
}

func (v *View) refuse(p Problem) {
	if len(v.Refused) < maxRefusals {
		v.Refused = append(v.Refused, p)
	}
}

// Counts are the peers by state.
func (p *Peers) Counts() map[State]int {
	counts := map[State]int{}
	for _, m := range p.members {
		counts[m.state]++
	}
	return counts
}
