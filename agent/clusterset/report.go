package clusterset

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetling/fleetling/discovery/mcs"
	"github.com/fleetling/fleetling/discovery/peer"
	"github.com/fleetling/fleetling/discovery/record"
)

// Report is what has changed since the last one, as data.
type Report struct {
	// Connected is that our own record can be read back.
	Connected bool
	// Reason and Message say why not, or why nothing is published.
	Reason, Message string
	// Counts are the peers by state.
	Counts map[peer.State]int
	// Views are the peers that may have changed. Names are all of them, sorted.
	Views  []peer.View
	Names  []string
	Events []peer.Event
}

// Reasons of Report.
const (
	ReasonConnected    = "Connected"
	ReasonUnreachable  = "Unreachable"
	ReasonNotListed    = "NotListed"
	ReasonNoMemberKey  = "NoMemberKey"
	ReasonConnecting   = "Progressing"
	ReasonNotPublished = "NotPublished"
)

// Shares are those of one Service. It may be called from anywhere.
func (l *Loop) Shares(key types.NamespacedName) []mcs.Share {
	l.mu.Lock()
	defer l.mu.Unlock()
	var shares []mcs.Share
	for _, s := range l.peers.Of(peer.Service{Namespace: key.Namespace, Name: key.Name}) {
		if s.Export.Created.After(s.Issued) {
			s.Export.Created = s.Issued // nobody exports before it says so
		}
		shares = append(shares, mcs.Share{Cluster: s.Cluster, Export: s.Export, Slices: s.Slices, Late: s.Late})
	}
	return shares
}

// Settled is that it is known whether a cluster exports a Service.
func (l *Loop) Settled(cluster string, key types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peers.Settled(cluster, peer.Service{Namespace: key.Namespace, Name: key.Name})
}

// Names are the Services of a namespace that any peer exports.
func (l *Loop) Names(namespace string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for _, s := range l.peers.Services() {
		if s.Namespace == namespace {
			names = append(names, s.Name)
		}
	}
	return names
}

// Published is that the peers can read this export as it is.
func (l *Loop) Published(key types.NamespacedName, export record.Export) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.published[key] != "" && l.published[key] == exportDigest(export)
}

// Permitted says whether this cluster may export from a namespace.
func (l *Loop) Permitted(namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list.Policy.Refuses(l.list.Cluster, namespace) == ""
}

// keep writes what has to survive a restart, before it is told: a list at once, what
// the peers have brought at most every keepEvery. It is all members at once, half a
// megabyte of a thousand. Whoever runs the carrier gains nothing: to replay what is
// younger than that after a restart is to have held it back so long.
func (l *Loop) keep(ctx context.Context, now time.Time) {
	// Nobody else changes the peers: only what reads them elsewhere needs the lock.
	revision := l.peers.Revision()
	if !l.seen.listed && (revision == l.seen.revision || now.Before(l.due.keep)) {
		return
	}
	kept := Kept{List: l.list, Memory: l.peers.Memory()}
	if err := l.config.Save(ctx, kept); err != nil {
		l.seen.unpublished = err // the next round tries again
		return
	}
	l.seen.revision, l.seen.listed = revision, false
	l.due.keep = now.Add(keepEvery)
}

// tell reports what has changed.
func (l *Loop) tell(ctx context.Context) {
	report := l.report()
	bare := report
	bare.Views, bare.Events = nil, nil
	if len(report.Views) == 0 && len(report.Events) == 0 && reflect.DeepEqual(bare, l.seen.reported) {
		return
	}
	if err := l.config.Report(ctx, report); err != nil {
		return // told again by the next round
	}
	l.seen.reported, l.seen.events, l.seen.all = bare, nil, false
	clear(l.seen.touched)
	for _, view := range report.Views {
		l.seen.views[view.Name] = view
	}
}

func (l *Loop) report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Report{Connected: l.peers.Connected(), Names: l.peers.Names(), Events: l.seen.events, Counts: l.peers.Counts()}
	r.Reason, r.Message = l.why(r.Connected)
	touched := r.Names
	if !l.seen.all {
		touched = nil
		for _, name := range r.Names {
			if l.seen.touched[name] {
				touched = append(touched, name)
			}
		}
	}
	for _, name := range touched {
		view, ok := l.peers.View(name)
		if doubt := l.seen.doubts[name]; doubt != nil && view.Problem.Reason == "" {
			view.Problem = peer.Problem{Reason: peer.Malformed, Message: doubt.Error()}
		}
		if ok && !reflect.DeepEqual(view, l.seen.views[name]) {
			r.Views = append(r.Views, view)
		}
	}
	return r
}

// why is reason and message of the connection.
func (l *Loop) why(connected bool) (reason, message string) {
	var problem problemError
	switch err := cmp.Or(l.seen.unpublished, l.seen.left, l.seen.unread); {
	case errors.Is(err, errNotListed):
		return ReasonNotListed, err.Error()
	case errors.Is(err, errNoKey):
		return ReasonNoMemberKey, err.Error()
	case errors.As(err, &problem):
		return string(problem.Reason), err.Error()
	case err != nil && connected:
		return ReasonNotPublished, err.Error()
	case err != nil:
		return ReasonUnreachable, err.Error() + ": what is imported stays as it is"
	case connected:
		return ReasonConnected, "the own record can be read back from the registry"
	}
	return ReasonConnecting, "the own record was not read back from the registry yet"
}
