package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/apply"
)

// MaxPause is how long a pause may be from when it is set.
const MaxPause = 72 * time.Hour

// pause is what a person has asked for, as it counts now.
type pause struct {
	until  time.Time
	reason string
	// tooLong says that it does not hold.
	tooLong bool
}

// holds is no for nil.
func (p *pause) holds() bool { return p != nil && !p.tooLong }

// left is how long it holds on; zero is not at all.
func (p *pause) left(now time.Time) time.Duration {
	if !p.holds() {
		return 0
	}
	return p.until.Sub(now)
}

// pauseOf is the pause that Member asks for; nil is none, or one that is over.
func pauseOf(m *v1alpha1.Member, now time.Time) *pause {
	asked := m.Spec.Pause
	if asked == nil || !asked.Until.After(now) {
		return nil
	}
	return &pause{until: asked.Until.Time, reason: asked.Reason, tooLong: asked.Until.Sub(pauseSet(m, now)) > MaxPause}
}

// pauseSet is when a pause was last set, by what the API server noted. It has no
// parts of seconds.
func pauseSet(m *v1alpha1.Member, now time.Time) time.Time {
	var set time.Time
	for _, entry := range m.ManagedFields {
		var fields struct {
			Spec struct {
				Pause json.RawMessage `json:"f:pause"`
			} `json:"f:spec"`
		}
		if entry.Time == nil || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil || fields.Spec.Pause == nil {
			continue
		}
		if entry.Time.After(set) {
			set = entry.Time.Time
		}
	}
	if set.IsZero() {
		return now
	}
	return set.Add(time.Second)
}

// readPause reads Member from the cache.
func (p *passLoop) readPause(ctx context.Context, now time.Time) (*pause, error) {
	var member v1alpha1.Member
	if err := p.status.client.Get(ctx, client.ObjectKey{Name: v1alpha1.Self}, &member); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if c := meta.FindStatusCondition(member.Status.Conditions, v1alpha1.Paused); !p.kept.restored && c != nil && c.Status == metav1.ConditionTrue {
		p.kept.paused = c.Message // from before a restart
	}
	return pauseOf(&member, now), nil
}

// over says once that a pause is over, and what waited for that.
func (p *passLoop) over(view outcome) {
	if p.kept.paused != "" && !view.pause.holds() {
		p.status.events.pauseOver(p.kept.paused)
	}
	p.kept.paused = ""
	if view.pause.holds() {
		p.kept.paused = view.paused()[0].Message
	}
}

// paused is a condition only where a pause is asked for.
func (o outcome) paused() []metav1.Condition {
	switch {
	case o.pause == nil:
		return nil
	case o.pause.tooLong:
		return []metav1.Condition{condition(v1alpha1.Paused, metav1.ConditionFalse, reasonPauseTooLong, fmt.Sprintf(
			"until %s is more than %s from when it was set, so nothing is paused: set it to an earlier time", stamp(o.pause.until), MaxPause))}
	}
	return []metav1.Condition{condition(v1alpha1.Paused, metav1.ConditionTrue, reasonPaused,
		fmt.Sprintf("until %s (%s); what waits: %s", stamp(o.pause.until), o.pause.reason, o.pending()))}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// pending counts by add-on what waits for the end of the pause.
func (o outcome) pending() string {
	var words []string
	for _, v := range o.addOns() {
		if text := pendingIn(v.report); text != "" {
			words = append(words, v.name+" has "+text)
		}
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// pendingIn is "" for nothing.
func pendingIn(r apply.AddOnReport) string {
	var words []string
	if n := untouched(r.Waiting); n > 0 {
		words = append(words, fmt.Sprintf("%d to apply", n))
	}
	if n := untouched(r.Removing); n > 0 {
		words = append(words, fmt.Sprintf("%d to delete", n))
	}
	return strings.Join(words, " and ")
}

func untouched(all []apply.Waiting) int {
	n := 0
	for _, w := range all {
		if w.What == apply.Untouched {
			n++
		}
	}
	return n
}
