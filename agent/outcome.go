package agent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/apply"
	"github.com/fleetling/fleetling/sources"
)

// outcome is all that a pass knows at its end. Status, events and metrics are
// functions of it.
type outcome struct {
	found    findings
	rollout  rollout
	report   apply.Report
	since    map[string]started
	snapshot error
	// connection is nil where the fleet has no registry, pause where nobody asks
	// for one.
	connection *connection
	pause      *pause
	now        time.Time
}

// Reasons of conditions that are not a failure's.
const (
	reasonReady              = "Ready"
	reasonFetched            = "Fetched"
	reasonVerified           = "Verified"
	reasonSelected           = "Selected"
	reasonApplied            = "Applied"
	reasonKept               = "Kept"
	reasonStale              = "Stale"
	reasonProgressing        = "Progressing"
	reasonUnknown            = "Unknown"
	reasonDependencyNotReady = "DependencyNotReady"
	reasonUnhealthy          = "Unhealthy"
	reasonTimedOut           = "TimedOut"
	reasonPruneHeld          = "PruneHeld"
	reasonNoStatus           = "NoStatus"
	reasonTooLarge           = "TooLarge"
	reasonMissing            = "Missing"
	reasonContained          = "Contained"
	reasonPaused             = "Paused"
	reasonPauseTooLong       = "PauseTooLong"
)

// addOnView is what is known of one add-on.
type addOnView struct {
	name    string
	target  *target
	active  *content
	blocked string
	report  apply.AddOnReport
	// late is never while the agent is paused.
	late bool
}

// addOns gives the views, in order: selected ones, then those that are being
// removed.
func (o outcome) addOns() []addOnView {
	var views []addOnView
	for _, r := range o.report.AddOns {
		v := addOnView{name: r.Name, report: r, blocked: o.rollout.blocked[r.Name]}
		if i := slices.IndexFunc(o.found.targets, func(t target) bool { return t.name == r.Name }); i >= 0 {
			v.target = &o.found.targets[i]
		}
		if i := slices.IndexFunc(o.rollout.active, func(c content) bool { return c.Name == r.Name }); i >= 0 {
			v.active = &o.rollout.active[i]
			v.late = !o.pause.holds() && o.now.Sub(o.since[r.Name].at) >= v.active.Timeout
		}
		views = append(views, v)
	}
	return views
}

// standings is how the add-ons are doing, by name.
func (o outcome) standings() map[string]standing {
	all := map[string]standing{}
	for _, v := range o.addOns() {
		all[v.name] = standing{
			ready: v.newest() && v.report.Applied() && v.report.Healthy() && v.report.Hold == nil,
			busy:  v.blocked == "" && !v.stuck() && !v.report.Healthy(),
		}
	}
	return all
}

// newest tells that the newest content is rolled out.
func (v addOnView) newest() bool {
	return v.target != nil && v.target.err == nil && v.active.is(v.target.content)
}

// untilTimeout is how long it is until an unhealthy add-on has had its time.
func (o outcome) untilTimeout() time.Duration {
	var wait time.Duration
	for _, v := range o.addOns() {
		if !o.pause.holds() && v.active != nil && !v.late && !v.report.Healthy() {
			wait = soonest(wait, v.active.Timeout-o.now.Sub(o.since[v.name].at))
		}
	}
	return wait
}

// conditions is the one table of an add-on's conditions. The first problem is
// Ready's.
func (v addOnView) conditions() []metav1.Condition {
	rendered, applied, healthy := v.rendered(), v.applied(), v.healthy()
	all := []metav1.Condition{rendered, applied, healthy}
	problem := firstFalse(all)
	if hold := v.report.Hold; hold != nil {
		held := condition(v1alpha1.Held, metav1.ConditionTrue, reasonPruneHeld, fmt.Sprintf(
			"%s: %s; they stay until somebody agrees (%s)", hold.Why, firstOf(hold.IDs, apply.ID.String), hold.Digest))
		all = append(all, held)
		problem = cmp.Or(problem, new(held))
	}
	if problem == nil {
		return append(all, v.moving(condition(v1alpha1.Ready, metav1.ConditionTrue, reasonReady,
			fmt.Sprintf("%d objects are applied and current", v.report.Objects)))...)
	}
	return append(all, v.moving(condition(v1alpha1.Ready, metav1.ConditionFalse, problem.Reason, problem.Message))...)
}

// moving adds Reconciling or Stalled to Ready, where it applies (kstatus).
func (v addOnView) moving(ready metav1.Condition) []metav1.Condition {
	switch {
	case v.stuck():
		return []metav1.Condition{ready, condition(v1alpha1.Stalled, metav1.ConditionTrue, ready.Reason, ready.Message)}
	case !v.underWay():
		return []metav1.Condition{ready}
	case ready.Status == metav1.ConditionTrue:
		return []metav1.Condition{ready, condition(v1alpha1.Reconciling, metav1.ConditionTrue, reasonProgressing,
			"to be deleted: "+firstOf(v.report.Removing, waitingText))}
	}
	return []metav1.Condition{ready, condition(v1alpha1.Reconciling, metav1.ConditionTrue, reasonProgressing, ready.Message)}
}

// stuck tells that a person has to do something.
func (v addOnView) stuck() bool {
	broken := v.target != nil && v.target.err != nil
	return broken || len(v.report.Failures) > 0 || v.report.Hold != nil || (v.late && !v.report.Healthy())
}

// underWay tells that time may do it.
func (v addOnView) underWay() bool {
	return v.blocked != "" || len(v.report.Waiting) > 0 || len(v.report.Removing) > 0 || !v.report.Healthy()
}

func (v addOnView) rendered() metav1.Condition {
	switch {
	case v.target == nil && v.active == nil:
		return condition(v1alpha1.Rendered, metav1.ConditionFalse, reasonProgressing, "it is not selected any more and is being removed")
	case v.target == nil:
		return condition(v1alpha1.Rendered, metav1.ConditionUnknown, reasonUnknown, "the newest selection is not known; what was rolled out before stays as it is")
	case v.target.err != nil:
		return condition(v1alpha1.Rendered, metav1.ConditionFalse, cmp.Or(string(sources.ReasonOf(v.target.err)), string(sources.RenderFailed)), v.target.err.Error())
	}
	return condition(v1alpha1.Rendered, metav1.ConditionTrue, reasonReady, fmt.Sprintf("%s gives %d objects", v.target.path, len(v.target.content.objects)))
}

func (v addOnView) applied() metav1.Condition {
	switch {
	case len(v.report.Failures) > 0:
		first := v.report.Failures[0]
		return condition(v1alpha1.Applied, metav1.ConditionFalse, string(first.Reason), more(first.String(), len(v.report.Failures)-1))
	case untouched(v.report.Waiting) > 0:
		return condition(v1alpha1.Applied, metav1.ConditionFalse, reasonPaused, "it has "+pendingIn(v.report)+" when the pause ends")
	case v.blocked != "":
		return condition(v1alpha1.Applied, metav1.ConditionFalse, reasonDependencyNotReady, "the new content waits for "+v.blocked)
	case len(v.report.Waiting) > 0:
		return condition(v1alpha1.Applied, metav1.ConditionFalse, reasonDependencyNotReady, firstOf(v.report.Waiting, waitingText))
	case v.active == nil:
		return condition(v1alpha1.Applied, metav1.ConditionFalse, reasonProgressing, "nothing of it is rolled out")
	}
	return condition(v1alpha1.Applied, metav1.ConditionTrue, reasonApplied, fmt.Sprintf("%d objects are as they should be", v.report.Objects))
}

func (v addOnView) healthy() metav1.Condition {
	switch {
	case v.active == nil:
		return condition(v1alpha1.Healthy, metav1.ConditionUnknown, reasonUnknown, "nothing of it is rolled out")
	case len(v.report.Unready) > 0:
		reason := reasonUnhealthy
		if v.late {
			reason = reasonTimedOut
		}
		return condition(v1alpha1.Healthy, metav1.ConditionFalse, reason, firstOf(v.report.Unready, unreadyText))
	case !v.report.Healthy():
		return condition(v1alpha1.Healthy, metav1.ConditionFalse, reasonUnhealthy, "not all objects are applied")
	case v.report.NoStatus > 0:
		return condition(v1alpha1.Healthy, metav1.ConditionTrue, reasonNoStatus, fmt.Sprintf("%d custom resources have no status and count as current", v.report.NoStatus))
	}
	return condition(v1alpha1.Healthy, metav1.ConditionTrue, reasonReady, "all objects are current")
}

func waitingText(w apply.Waiting) string { return w.ID.String() + " waits for " + w.What }

func unreadyText(u apply.Unready) string {
	return fmt.Sprintf("%s is %s: %s", u.ID, u.Status, u.Message)
}

// firstOf words a list by its first three.
func firstOf[T any](items []T, text func(T) string) string {
	var words []string
	for _, item := range items[:min(3, len(items))] {
		words = append(words, text(item))
	}
	return more(strings.Join(words, "; "), len(items)-3)
}

func more(text string, n int) string {
	if n <= 0 {
		return text
	}
	return fmt.Sprintf("%s; and %d more", text, n)
}

// maxText bounds each text in status, in bytes.
const maxText = 512

func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText-len("…")], "") + "…"
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: cut(message)}
}

func firstFalse(conditions []metav1.Condition) *metav1.Condition {
	i := slices.IndexFunc(conditions, func(c metav1.Condition) bool { return c.Status != metav1.ConditionTrue })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}

// firstError is the first of joined errors.
func firstError(err error) (*sources.Error, bool) { return errors.AsType[*sources.Error](err) }
