package agent

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/apply"
)

// eventWriter says what has happened, for `kubectl get events`.
type eventWriter struct {
	recorder events.EventRecorder
}

// transitions raises an event for each condition that changed. Ready sums the
// others up, and what is under way is no news.
func (e eventWriter) transitions(object runtime.Object, changed []metav1.Condition) {
	for _, c := range changed {
		switch {
		case c.Type == v1alpha1.Ready, c.Type == v1alpha1.Reconciling, c.Type == v1alpha1.Stalled, c.Status == metav1.ConditionUnknown:
			continue
		case c.Status == metav1.ConditionTrue && c.Type != v1alpha1.Held:
			e.recorder.Eventf(object, nil, corev1.EventTypeNormal, c.Reason, c.Type, "%s", c.Message)
		default:
			e.recorder.Eventf(object, nil, corev1.EventTypeWarning, c.Reason, c.Type, "%s", c.Message)
		}
	}
}

// self is our Member, for events about the agent.
func self() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: typeMeta("Member"), ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.Self}}
}

// configRefused says why the agent goes on with the configuration before.
func (e eventWriter) configRefused(err error) {
	e.recorder.Eventf(self(), nil, corev1.EventTypeWarning, "ConfigurationRefused", "Read", "%s", cut("the one before goes on: "+err.Error()))
}

// pauseOver says what a pause held back.
func (e eventWriter) pauseOver(waited string) {
	e.recorder.Eventf(self(), nil, corev1.EventTypeNormal, "PauseOver", v1alpha1.Paused, "%s", cut("the pause is over: it was "+waited))
}

// changes raises one event for what a pass changed, and one for what it
// repaired.
func (e eventWriter) changes(object runtime.Object, report apply.AddOnReport) {
	if len(report.Repaired) > 0 {
		e.recorder.Eventf(object, nil, corev1.EventTypeNormal, "DriftRepaired", "Repair", "%s",
			cut(fmt.Sprintf("%d objects were changed or deleted by others: %s", len(report.Repaired), firstOf(report.Repaired, apply.ID.String))))
	}
	groups := report.Changes.ToGroupedMap()
	for _, action := range slices.Sorted(maps.Keys(groups)) {
		if subjects := groups[action]; action != "unchanged" {
			e.recorder.Eventf(object, nil, corev1.EventTypeNormal, "Changed", "Apply", "%s",
				cut(fmt.Sprintf("%d objects %s: %s", len(subjects), action, firstOf(subjects, func(s string) string { return s }))))
		}
	}
}
