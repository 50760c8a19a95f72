package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/agent/clusterset"
	"github.com/fleetling/fleetling/discovery/peer"
)

// peerWriter turns what the ClusterSet's loop reports into Peers, events and
// metrics, and posts this cluster's own part of it for Member.
type peerWriter struct {
	status *statusWriter
	board  *board
	// posted wakes the pass loop, which writes Member.
	posted func()
	// key is the public line of the member key.
	key string
}

// connection is what Member says of the ClusterSet.
type connection struct {
	connected       bool
	reason, message string
	key             string
	counts          v1alpha1.PeerCount
}

// report takes one report. Each object is written when something in it differs.
func (w *peerWriter) report(ctx context.Context, r clusterset.Report) error {
	now := time.Now()
	var errs []error
	for _, view := range r.Views {
		next := &v1alpha1.Peer{TypeMeta: typeMeta("Peer"), ObjectMeta: metav1.ObjectMeta{Name: view.Name}, Status: peerStatus(view)}
		changed, err := w.status.put(ctx, next, &v1alpha1.Peer{}, now)
		errs = append(errs, err)
		w.status.events.transitions(next, refusals(changed))
	}
	errs = append(errs, w.sweep(ctx, r.Names))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, event := range r.Events {
		w.event(event)
	}
	w.status.metrics.peersAre(r.Counts)
	next := connection{connected: r.Connected, reason: r.Reason, message: r.Message, key: w.key, counts: countsOf(r.Counts)}
	if w.board.connect(next) {
		w.posted()
	}
	return nil
}

// refusals are the conditions that say of a good record that not all of it is
// taken: of all else the ClusterSet's own events tell.
func refusals(changed []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(changed, func(c metav1.Condition) bool {
		return c.Type != v1alpha1.Contained || c.Status != metav1.ConditionFalse
	})
}

func countsOf(counts map[peer.State]int) v1alpha1.PeerCount {
	return v1alpha1.PeerCount{Fresh: counts[peer.Fresh], Late: counts[peer.Late], Unknown: counts[peer.Unknown], Withdrawn: counts[peer.Withdrawn]}
}

// sweep deletes the Peers that are in the cluster list no longer.
func (w *peerWriter) sweep(ctx context.Context, names []string) error {
	var list v1alpha1.PeerList
	if err := w.status.client.List(ctx, &list); err != nil {
		return fmt.Errorf("list Peers: %w", err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if _, there := slices.BinarySearch(names, p.Name); there {
			continue
		}
		if err := w.status.client.Delete(ctx, p); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete Peer %s: %w", p.Name, err)
		}
		delete(w.status.wrote, "Peer/"+p.Name)
	}
	return nil
}

// event is on the peer it is of, and else on Member.
func (w *peerWriter) event(e peer.Event) {
	kind, name := "Peer", e.Member
	if name == "" {
		kind, name = "Member", v1alpha1.Self
	}
	severity := corev1.EventTypeNormal
	if e.Warning {
		severity = corev1.EventTypeWarning
	}
	object := &metav1.PartialObjectMetadata{TypeMeta: typeMeta(kind), ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.status.events.recorder.Eventf(object, nil, severity, string(e.Reason), "ClusterSet", "%s", cut(e.Message))
}

// peerStatus is the one table of a Peer's status.
func peerStatus(v peer.View) v1alpha1.PeerStatus {
	return v1alpha1.PeerStatus{
		State: string(v.State), Exports: v.Exports, Imported: v.Imported, Refused: v.RefusedExports + v.RefusedEndpoints,
		Conditions: []metav1.Condition{trustedOf(v), freshOf(v), containedOf(v)},
	}
}

func trustedOf(v peer.View) metav1.Condition {
	switch {
	case v.Problem.Reason != "":
		return condition(v1alpha1.Trusted, metav1.ConditionFalse, string(v.Problem.Reason), v.Problem.Message+": its last good record, if any, counts")
	case v.State == peer.Unknown:
		return condition(v1alpha1.Trusted, metav1.ConditionUnknown, reasonProgressing, "no record of it was read since the agent started")
	case v.Overlap.Reason != "":
		return condition(v1alpha1.Trusted, metav1.ConditionTrue, string(v.Overlap.Reason), v.Overlap.Message)
	}
	return condition(v1alpha1.Trusted, metav1.ConditionTrue, reasonVerified, "its record is signed by a key of its entry")
}

func freshOf(v peer.View) metav1.Condition {
	switch {
	case v.State == peer.Fresh:
		return condition(v1alpha1.Fresh, metav1.ConditionTrue, string(peer.Fresh), "its lease runs")
	case v.State == peer.Late && v.Late:
		return condition(v1alpha1.Fresh, metav1.ConditionFalse, string(peer.EndpointsLate), "it has not renewed its record: its endpoints are not ready, but where they are the last ones of a Service")
	case v.State == peer.Late:
		return condition(v1alpha1.Fresh, metav1.ConditionFalse, string(peer.Late), "it has not renewed its record within its lease")
	case v.State == peer.Withdrawn:
		return condition(v1alpha1.Fresh, metav1.ConditionFalse, string(peer.Withdrawn), "it has signed that it left the ClusterSet")
	}
	return condition(v1alpha1.Fresh, metav1.ConditionUnknown, reasonProgressing, "no record of it was read since the agent started: what is imported from it stays")
}

func containedOf(v peer.View) metav1.Condition {
	if v.RefusedExports+v.RefusedEndpoints == 0 {
		return condition(v1alpha1.Contained, metav1.ConditionTrue, reasonContained, "all that it exports is allowed to it")
	}
	var words []string
	for _, p := range v.Refused {
		words = append(words, p.Message)
	}
	return condition(v1alpha1.Contained, metav1.ConditionFalse, string(v.Refused[0].Reason),
		fmt.Sprintf("%d exports and %d endpoints are not imported: %s", v.RefusedExports, v.RefusedEndpoints, strings.Join(words, "; ")))
}
