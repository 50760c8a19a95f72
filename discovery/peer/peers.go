package peer

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/record"
)

// Self is this cluster.
type Self struct {
	ClusterSet, Name string
	// UID is that of the kube-system namespace.
	UID string
	// Key is the public line of this member's key.
	Key string
}

// Service names a Service in every cluster (namespace sameness).
type Service struct{ Namespace, Name string }

func compareServices(a, b Service) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// Outcome is what a call has brought about.
type Outcome struct {
	// Problem is why what was handed over is refused; zero is that it is not.
	Problem Problem
	// Changed are the services whose shares differ now, sorted, each once.
	Changed []Service
	// Events are the transitions.
	Events []Event
}

func (o *Outcome) change(services ...Service) {
	o.Changed = append(o.Changed, services...)
	slices.SortFunc(o.Changed, compareServices)
	o.Changed = slices.Compact(o.Changed)
}

func (o *Outcome) tell(events ...Event) { o.Events = append(o.Events, events...) }

// Peers is what this cluster knows of the others. It is not safe for use by
// several goroutines: it has one owner.
type Peers struct {
	self   Self
	timing Timing
	policy Policy
	// ours are this cluster's node, pod and service ranges.
	ours []netip.Prefix

	// entries are the list in effect, with ours; listed is that one was set.
	entries map[string]Entry
	held    map[string]struct{}
	listed  bool
	members map[string]*member

	// namespaces are those that exist here.
	namespaces map[string]struct{}
	// exporters are the members that share a service.
	exporters map[Service]map[string]struct{}
	// pending are the members of which parts are missing.
	pending map[string]struct{}

	marks    map[string]Mark
	revision uint64

	connection connection
	packer     packer
	rival      rival
}

// member is what is held of one peer.
type member struct {
	entry Entry
	// blocked is why nothing of it is imported; overlap names the other entry
	// also where this one is imported.
	blocked, overlap Problem
	// problem is that of the last record that was refused, partProblem of a part
	// that the record taken names.
	problem, partProblem Problem

	// head and refused are digests of sealed records: the one taken, the one
	// refused.
	head, refused    discovery.Digest
	payload, content discovery.Digest
	key, uid         string
	issued           time.Time
	total            int
	// raw is the payload taken, deflated: its exports are read again when a
	// namespace appears, also while the carrier is away.
	raw []byte
	// exported are the namespaces that it exports, sorted.
	exported []string
	exports  map[Service]*export
	parts    map[discovery.Digest]record.Slice
	// bad are the parts that were refused: not wanted again.
	bad map[discovery.Digest]struct{}

	life
}

// New takes the memory of the run before. Without any, the first list that is set
// is taken as it is.
func New(self Self, timing Timing, memory Memory) *Peers {
	p := &Peers{
		self: self, timing: timing,
		entries: map[string]Entry{}, held: map[string]struct{}{}, members: map[string]*member{},
		namespaces: map[string]struct{}{}, exporters: map[Service]map[string]struct{}{},
		pending: map[string]struct{}{}, marks: map[string]Mark{},
	}
	maps.Copy(p.marks, memory.Marks)
	for _, entry := range memory.Entries {
		p.entries[entry.Name] = entry
	}
	for _, name := range memory.Held {
		p.held[name] = struct{}{}
	}
	if len(memory.Entries) > 0 {
		p.renew(&Outcome{})
	}
	return p
}

// SetPolicy sets who may export what. All shares may differ after.
func (p *Peers) SetPolicy(policy Policy) { p.policy = policy }

// SetRanges sets this cluster's own node, pod and service ranges. All shares may
// differ after.
func (p *Peers) SetRanges(ours []netip.Prefix) { p.ours = ours }

// Wants is whether the record that a head names should be got and taken. Heads of
// those that are not in the list cost nothing: there may be any number.
func (p *Peers) Wants(head discovery.Head) bool {
	m := p.members[head.Member]
	return m != nil && len(m.entry.Keys) > 0 && head.Record != "" &&
		head.Record != m.head && head.Record != m.refused
}

// Take judges the sealed record that was got for a member. What is refused changes
// nothing: the last good one stays.
func (p *Peers) Take(name string, sealed []byte, now time.Time) Outcome {
	m := p.members[name]
	if m == nil {
		return Outcome{Problem: problem(UnknownMember, "cluster %.64q is not in the cluster list: its record is ignored", name)}
	}
	c := &claim{member: m, sealed: sealed, now: now}
	if wrong := p.judge(c); wrong.Reason != "" {
		return p.refuse(m, c, wrong)
	}
	return p.accept(m, c)
}

func (p *Peers) refuse(m *member, c *claim, wrong Problem) Outcome {
	out := Outcome{Problem: wrong}
	// A lease runs out without a new head: that one is looked at again.
	if wrong.Reason != DuplicateIdentity {
		m.refused = discovery.DigestOf(c.sealed)
	}
	if m.problem != wrong {
		out.tell(warning(m.entry.Name, wrong))
	}
	m.problem = wrong
	return out
}

func (p *Peers) accept(m *member, c *claim) Outcome {
	var out Outcome
	if m.problem.Reason != "" {
		out.tell(normal(m.entry.Name, ProblemResolved, "a good record has come: %s is over", m.problem.Reason))
	}
	m.problem, m.refused = Problem{}, ""
	m.head = discovery.DigestOf(c.sealed)
	if m.payload == c.digest {
		return out
	}
	content := c.record.Content()
	p.renewed(m, c, &out)
	p.remember(c.key, Mark{Sequence: c.record.Sequence, Payload: c.digest, Content: content, Late: m.notReady})
	m.payload, m.key, m.uid, m.issued = c.digest, c.key, c.record.ClusterUID, c.record.Issued
	if m.content != content {
		m.content = content
		m.raw = p.packer.deflate(c.payload)
		m.total = len(c.record.Exports)
		m.exported = namespacesOf(c.record)
		p.load(m, c.record, &out)
	}
	return out
}

// drop forgets all that was taken of a member.
func (p *Peers) drop(m *member, out *Outcome) {
	for service := range m.exports {
		out.change(service)
		p.unshare(service, m.entry.Name)
	}
	delete(p.pending, m.entry.Name)
	m.head, m.payload, m.content, m.key, m.uid, m.raw, m.exported, m.total = "", "", "", "", "", nil, nil, 0
	m.exports, m.parts, m.bad = map[Service]*export{}, nil, nil
	m.problem, m.partProblem, m.refused, m.life = Problem{}, Problem{}, "", life{}
}
