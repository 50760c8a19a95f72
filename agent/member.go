package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/agent/clusterset"
	"github.com/fleetling/fleetling/discovery/record"
	"github.com/fleetling/fleetling/sources"
)

// memberConditions is the one table of Member's conditions. A source that is
// silent and a head that is refused are no part of Ready: what is verified is
// what counts.
func (o outcome) memberConditions() []metav1.Condition {
	source, verified, selected, applied := o.sourceReady(), o.verified(), o.selected(), o.applied()
	all := append([]metav1.Condition{source, verified, selected, applied, o.snapshotKept()}, slices.Concat(o.connected(), o.paused())...)
	if o.found.verified == nil && len(o.rollout.active) == 0 {
		problem := firstFalse([]metav1.Condition{source, verified})
		if o.found.stranger() {
			problem = &selected
		}
		if problem == nil {
			problem = &applied
		}
		return append(all, condition(v1alpha1.Ready, metav1.ConditionFalse, problem.Reason, problem.Message))
	}
	if problem := firstFalse([]metav1.Condition{selected, applied}); problem != nil {
		return append(all, o.moving(condition(v1alpha1.Ready, metav1.ConditionFalse, problem.Reason, problem.Message))...)
	}
	for _, v := range o.addOns() {
		if ready := readyOf(v); ready.Status != metav1.ConditionTrue {
			return append(all, o.moving(condition(v1alpha1.Ready, metav1.ConditionFalse, ready.Reason, "add-on "+v.name+": "+ready.Message))...)
		}
	}
	return append(all, o.moving(condition(v1alpha1.Ready, metav1.ConditionTrue, reasonReady,
		fmt.Sprintf("%d add-ons are as the verified revision says", len(o.report.AddOns))))...)
}

// moving adds Stalled where some add-on is, and else Reconciling where some is.
func (o outcome) moving(ready metav1.Condition) []metav1.Condition {
	var reconciling *metav1.Condition
	for _, v := range o.addOns() {
		for _, c := range v.conditions() {
			switch c.Type {
			case v1alpha1.Stalled:
				return []metav1.Condition{ready, condition(v1alpha1.Stalled, metav1.ConditionTrue, c.Reason, "add-on "+v.name+": "+c.Message)}
			case v1alpha1.Reconciling:
				reconciling = cmp.Or(reconciling, new(condition(v1alpha1.Reconciling, metav1.ConditionTrue, c.Reason, "add-on "+v.name+": "+c.Message)))
			}
		}
	}
	switch {
	case o.selected().Status == metav1.ConditionFalse:
		return []metav1.Condition{ready, condition(v1alpha1.Stalled, metav1.ConditionTrue, ready.Reason, ready.Message)}
	case reconciling != nil:
		return []metav1.Condition{ready, *reconciling}
	}
	return []metav1.Condition{ready}
}

func readyOf(v addOnView) metav1.Condition {
	for _, c := range v.conditions() {
		if c.Type == v1alpha1.Ready {
			return c
		}
	}
	return metav1.Condition{}
}

func (o outcome) sourceReady() metav1.Condition {
	f := o.found
	switch {
	case f.contact != nil && f.stale:
		return condition(v1alpha1.SourceReady, metav1.ConditionFalse, reasonStale, "no contact for too long: "+f.contact.Error())
	case f.contact != nil:
		return condition(v1alpha1.SourceReady, metav1.ConditionFalse, cmp.Or(string(sources.ReasonOf(f.contact)), string(sources.Unreachable)), f.contact.Error())
	case f.head == "":
		return condition(v1alpha1.SourceReady, metav1.ConditionUnknown, reasonProgressing, "the branch was not read yet")
	}
	return condition(v1alpha1.SourceReady, metav1.ConditionTrue, reasonFetched, "the branch is at "+short(f.head))
}

func (o outcome) verified() metav1.Condition {
	f := o.found
	switch {
	case f.refusal != nil:
		return condition(v1alpha1.Verified, metav1.ConditionFalse, cmp.Or(string(sources.ReasonOf(f.refusal)), reasonUnknown), f.refusal.Error())
	case f.verified == nil:
		return condition(v1alpha1.Verified, metav1.ConditionUnknown, reasonProgressing, "no head was verified yet")
	case f.verified.Twin:
		return condition(v1alpha1.Verified, metav1.ConditionTrue, reasonVerified, fmt.Sprintf(
			"%s is signed by %s; the commit verified before it came back under another id: somebody between the signers and this cluster rewrote it", short(f.verified.Commit), f.verified.Signer))
	}
	return condition(v1alpha1.Verified, metav1.ConditionTrue, reasonVerified, fmt.Sprintf("%s is signed by %s", short(f.verified.Commit), f.verified.Signer))
}

func (o outcome) selected() metav1.Condition {
	f := o.found
	switch {
	case f.selectErr != nil:
		return condition(v1alpha1.Selected, metav1.ConditionFalse, cmp.Or(string(sources.ReasonOf(f.selectErr)), reasonUnknown),
			f.selectErr.Error()+": nothing new is applied or deleted, what is applied stays repaired")
	case f.selection == nil:
		return condition(v1alpha1.Selected, metav1.ConditionUnknown, reasonProgressing, "no verified revision was read yet")
	case f.told.nameOnly:
		return condition(v1alpha1.Selected, metav1.ConditionTrue, string(sources.IdentityMissing), f.told.err.Error())
	case f.told.err != nil:
		return condition(v1alpha1.Selected, metav1.ConditionTrue, cmp.Or(string(sources.ReasonOf(f.told.err)), string(sources.IdentityMissing)),
			f.told.err.Error()+": the last good identity stays in force")
	case len(f.selection.Differs) > 0:
		return condition(v1alpha1.Selected, metav1.ConditionTrue, string(sources.IdentityDiffers), strings.Join(f.selection.Differs, "; "))
	}
	return condition(v1alpha1.Selected, metav1.ConditionTrue, reasonSelected, fmt.Sprintf("%d add-ons are for this cluster", len(f.selection.AddOns)))
}

func (o outcome) applied() metav1.Condition {
	if o.found.targets == nil && len(o.rollout.active) == 0 {
		return condition(v1alpha1.Applied, metav1.ConditionUnknown, reasonProgressing, "nothing is rolled out yet")
	}
	for _, v := range o.addOns() {
		if problem := firstFalse([]metav1.Condition{v.rendered(), v.applied()}); problem != nil && v.report.Selected && problem.Status == metav1.ConditionFalse {
			return condition(v1alpha1.Applied, metav1.ConditionFalse, problem.Reason, "add-on "+v.name+": "+problem.Message)
		}
	}
	return condition(v1alpha1.Applied, metav1.ConditionTrue, reasonApplied, "all add-ons are applied")
}

func (o outcome) snapshotKept() metav1.Condition {
	switch {
	case o.snapshot != nil:
		return condition(v1alpha1.SnapshotKept, metav1.ConditionFalse, reasonTooLarge, "snapshot: "+o.snapshot.Error())
	case len(o.rollout.active) == 0:
		return condition(v1alpha1.SnapshotKept, metav1.ConditionUnknown, reasonProgressing, "nothing is rolled out yet")
	}
	return condition(v1alpha1.SnapshotKept, metav1.ConditionTrue, reasonKept, "a new Pod can repair what is applied while Git is away")
}

// connected is a condition only where there is a registry.
func (o outcome) connected() []metav1.Condition {
	c := o.connection
	switch {
	case c == nil:
		return nil
	case c.connected && c.reason == clusterset.ReasonConnected:
		return []metav1.Condition{condition(v1alpha1.Connected, metav1.ConditionTrue, c.reason, c.message)}
	case c.reason == clusterset.ReasonConnecting:
		return []metav1.Condition{condition(v1alpha1.Connected, metav1.ConditionUnknown, c.reason, c.message)}
	}
	return []metav1.Condition{condition(v1alpha1.Connected, metav1.ConditionFalse, c.reason, c.message)}
}

// memberStatus is all of Member's status but for the times of its conditions.
func (o outcome) memberStatus(config Config) v1alpha1.MemberStatus {
	s := v1alpha1.MemberStatus{
		Source:                 &v1alpha1.Source{URL: config.Remote.URL, Branch: config.Remote.Branch},
		APIServer:              config.reached,
		Birth:                  new(o.birth()),
		LastHandledReconcileAt: o.found.handled,
		Conditions:             o.memberConditions(),
	}
	o.who(&s)
	if v := o.found.verified; v != nil {
		s.Revision = &v1alpha1.Revision{
			Commit: v.Commit, Short: short(v.Commit), Signer: v.Signer.Name, Fingerprint: v.Signer.Fingerprint, SignedAt: metav1.NewTime(v.SignedAt),
		}
		if o.found.targets != nil && o.applied().Status == metav1.ConditionTrue {
			s.AppliedRevision = v.Commit
		}
	}
	for _, v := range o.addOns() {
		s.AddOns.Total++
		if readyOf(v).Status == metav1.ConditionTrue {
			s.AddOns.Ready++
		}
		counts := v.counts()
		s.Objects.Total += counts.Total
		s.Objects.Ready += counts.Ready
		s.Objects.Failed += counts.Failed
		s.Objects.Held += counts.Held
	}
	s.AddOns.Summary = fmt.Sprintf("%d/%d", s.AddOns.Ready, s.AddOns.Total)
	if c := o.connection; c != nil {
		s.MemberKey, s.Peers = c.key, &c.counts
	}
	for _, id := range o.report.Strays[:min(maxListed, len(o.report.Strays))] {
		s.Strays = append(s.Strays, cut(id.String()))
	}
	return s
}

func (o outcome) who(s *v1alpha1.MemberStatus) {
	switch selection := o.found.selection; {
	case selection != nil:
		s.Identity = &v1alpha1.Identity{Name: selection.Cluster, ClusterSet: selection.ClusterSet}
		for _, l := range selection.Labels {
			s.Identity.Labels = append(s.Identity.Labels, v1alpha1.Label{Key: l.Key, Value: l.Value, Origin: string(l.Origin)})
		}
		s.SelectionDigest = selection.Digest
	case o.found.told.identity != nil:
		s.Identity = &v1alpha1.Identity{Name: o.found.told.identity.Name, ClusterSet: o.found.told.identity.ClusterSet}
	}
}

// maxListed is how many of a list status names.
const maxListed = 5

func short(commit string) string { return commit[:min(12, len(commit))] }

// addOnStatus is all of an AddOn's status but for the times of its conditions.
func (v addOnView) addOnStatus() v1alpha1.AddOnStatus {
	s := v1alpha1.AddOnStatus{Objects: v.counts(), Failures: v.failures(), Conditions: v.conditions()}
	switch {
	case v.active != nil:
		s.Path, s.Revision, s.Digest = v.active.Path, v.active.Revision, v.active.Digest
	case v.target != nil:
		s.Path = v.target.path
	}
	s.RevisionShort = short(s.Revision)
	if hold := v.report.Hold; hold != nil {
		s.Held = &v1alpha1.HeldDeletions{Count: len(hold.IDs), Digest: hold.Digest, Why: cut(hold.Why)}
		for _, id := range hold.IDs[:min(maxListed, len(hold.IDs))] {
			s.Held.Objects = append(s.Held.Objects, cut(id.String()))
		}
	}
	return s
}

func (v addOnView) counts() v1alpha1.AddOnObjects {
	r := v.report
	c := v1alpha1.AddOnObjects{Total: r.Objects, Ready: r.Ready, Failed: len(r.Failures)}
	if r.Hold != nil {
		c.Held = len(r.Hold.IDs)
	}
	c.Summary = fmt.Sprintf("%d/%d", c.Ready, c.Total)
	return c
}

// failures are the first five: why it does not render, then what was refused.
func (v addOnView) failures() []v1alpha1.Failure {
	var all []v1alpha1.Failure
	if v.target != nil && v.target.err != nil {
		for _, err := range flatten(v.target.err) {
			all = append(all, renderFailure(err))
		}
	}
	for _, f := range v.report.Failures {
		all = append(all, v1alpha1.Failure{Object: cut(f.ID.String()), File: cut(f.File), Reason: string(f.Reason), Message: cut(f.Message)})
	}
	return all[:min(maxListed, len(all))]
}

// flatten gives the errors that errors.Join put together.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}

func renderFailure(err error) v1alpha1.Failure {
	e, ok := firstError(err)
	if !ok || e.Err == nil {
		return v1alpha1.Failure{Reason: string(sources.RenderFailed), Message: cut(err.Error())}
	}
	file := e.File
	if e.Line > 0 {
		file = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return v1alpha1.Failure{Object: cut(e.Object), File: cut(file), Reason: string(e.Reason), Message: cut(e.Err.Error())}
}

// status is how this cluster is doing, for people who look at the whole fleet.
func (o outcome) status() record.Status {
	var s record.Status
	for _, c := range o.memberConditions() {
		if c.Type == v1alpha1.Ready {
			s.Ready, s.Reason, s.Message = c.Status == metav1.ConditionTrue, c.Reason, c.Message
		}
	}
	if o.found.verified != nil {
		s.Revision = o.found.verified.Commit
	}
	for _, v := range o.addOns() {
		s.AddOns++
		if readyOf(v).Status != metav1.ConditionTrue && len(s.Failing) < maxListed {
			s.Failing = append(s.Failing, v.name)
		}
	}
	return s
}
