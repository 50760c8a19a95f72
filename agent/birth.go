package agent

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
)

// birth gives the times of what has come true by now. Only what happens in this
// cluster counts: that somebody delivered the agent is no birth.
func (o outcome) birth() v1alpha1.Birth {
	now := metav1.NewTime(o.now.Truncate(time.Second))
	at := func(is bool) *metav1.Time {
		if !is {
			return nil
		}
		return new(now)
	}
	verified := o.found.verified != nil
	return v1alpha1.Birth{
		APIUp:        new(now), // the pass that this is of had its answers
		Identity:     at(o.found.told.identity != nil),
		Verified:     at(verified),
		AddOnApplied: at(verified && o.someApplied()),
		Ready:        at(meta.IsStatusConditionTrue(o.memberConditions(), v1alpha1.Ready)),
	}
}

// someApplied tells that an add-on is applied as selected.
func (o outcome) someApplied() bool {
	for _, v := range o.addOns() {
		if v.report.Selected && v.applied().Status == metav1.ConditionTrue {
			return true
		}
	}
	return false
}

// carryBirth keeps what was written once.
func carryBirth(old *v1alpha1.Birth, next *v1alpha1.Birth) {
	if old == nil || next == nil {
		return
	}
	for _, pair := range [][2]**metav1.Time{
		{&old.APIUp, &next.APIUp},
		{&old.Identity, &next.Identity},
		{&old.Verified, &next.Verified},
		{&old.AddOnApplied, &next.AddOnApplied},
		{&old.Ready, &next.Ready},
	} {
		if *pair[0] != nil {
			*pair[1] = *pair[0]
		}
	}
}
