package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetling/fleetling/apply"
	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/fleet"
	"github.com/fleetling/fleetling/sources/trust"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// good is an outcome of one add-on in which all is well.
func good() outcome {
	c := made("web", "2")
	c.Path, c.Timeout = "addons/web", 5*time.Minute
	verified := &trust.Verified{Pin: trust.Pin{Commit: strings.Repeat("c", 40)}, Signer: trust.Signer{Name: "alice", Fingerprint: "SHA256:x"}}
	return outcome{
		found: findings{
			told: told{identity: &fleet.Identity{Name: "one", ClusterSet: "prod"}},
			head: verified.Commit, lastContact: noon, verified: verified,
			selection: &fleet.Selection{Cluster: "one", ClusterSet: "prod", Digest: "sha256:s", AddOns: []fleet.AddOn{{Name: "web"}}},
			targets:   []target{aim(c)},
		},
		rollout: rollout{active: []content{c}, blocked: map[string]string{}},
		report:  apply.Report{AddOns: []apply.AddOnReport{{Name: "web", Selected: true, Objects: 1, Ready: 1, Inventory: 1}}},
		since:   map[string]started{"web": {c.Digest, noon}},
		now:     noon,
	}
}

// summary is "Type=Status Reason" of each condition.
func summary(conditions []metav1.Condition) []string {
	var lines []string
	for _, c := range conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	return lines
}

func id(name string) apply.ID {
	return apply.ID{Kind: "ConfigMap", Namespace: "shop", Name: name}
}

func TestConditionsOfAnAddOn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*outcome)
		want   []string
	}{
		"all is well": {
			change: func(*outcome) {},
			want:   []string{"Rendered=True Ready", "Applied=True Applied", "Healthy=True Ready", "Ready=True Ready"},
		},
		"custom resources without a status are well, and it says so": {
			change: func(o *outcome) { o.report.AddOns[0].NoStatus = 1 },
			want:   []string{"Rendered=True Ready", "Applied=True Applied", "Healthy=True NoStatus", "Ready=True Ready"},
		},
		"an object that is not current yet is on its way": {
			change: func(o *outcome) { unready(o) },
			want:   []string{"Rendered=True Ready", "Applied=True Applied", "Healthy=False Unhealthy", "Ready=False Unhealthy", "Reconciling=True Progressing"},
		},
		"after the add-on's timeout it needs a person": {
			change: func(o *outcome) { unready(o); o.now = noon.Add(5 * time.Minute) },
			want:   []string{"Rendered=True Ready", "Applied=True Applied", "Healthy=False TimedOut", "Ready=False TimedOut", "Stalled=True TimedOut"},
		},
		"what was refused gives its own reason": {
			change: func(o *outcome) {
				o.report.AddOns[0].Failures = []apply.Failure{{ID: id("a"), Reason: apply.Denied, Message: "no"}}
				o.report.AddOns[0].Ready = 0
			},
			want: []string{"Rendered=True Ready", "Applied=False Denied", "Healthy=False Unhealthy", "Ready=False Denied", "Stalled=True Denied"},
		},
		"what does not render gives its own reason, and what is rolled out goes on": {
			change: func(o *outcome) {
				o.found.targets[0] = target{name: "web", err: &sources.Error{Reason: sources.EmptyRender, File: "addons/web", Err: errors.New("nothing")}}
			},
			want: []string{"Rendered=False EmptyRender", "Applied=True Applied", "Healthy=True Ready", "Ready=False EmptyRender", "Stalled=True EmptyRender"},
		},
		"a new content waits for what it depends on": {
			change: func(o *outcome) { o.rollout.blocked["web"] = "add-on base to be ready" },
			want:   []string{"Rendered=True Ready", "Applied=False DependencyNotReady", "Healthy=True Ready", "Ready=False DependencyNotReady", "Reconciling=True Progressing"},
		},
		"an object waits for its kind": {
			change: func(o *outcome) {
				o.report.AddOns[0].Waiting = []apply.Waiting{{ID: id("a"), What: "its kind"}}
				o.report.AddOns[0].Ready = 0
			},
			want: []string{"Rendered=True Ready", "Applied=False DependencyNotReady", "Healthy=False Unhealthy", "Ready=False DependencyNotReady", "Reconciling=True Progressing"},
		},
		"a held deletion holds Ready": {
			change: func(o *outcome) {
				o.report.AddOns[0].Hold = &apply.Hold{IDs: []apply.ID{id("a")}, Digest: "sha256:h", Why: "many"}
			},
			want: []string{"Rendered=True Ready", "Applied=True Applied", "Healthy=True Ready", "Held=True PruneHeld", "Ready=False PruneHeld", "Stalled=True PruneHeld"},
		},
		"a deletion under way does not": {
			change: func(o *outcome) {
				o.report.AddOns[0].Removing = []apply.Waiting{{ID: id("a"), What: "its finalizer"}}
			},
			want: []string{"Rendered=True Ready", "Applied=True Applied", "Healthy=True Ready", "Ready=True Ready", "Reconciling=True Progressing"},
		},
		"an add-on that is being removed says so": {
			change: func(o *outcome) {
				o.found.targets, o.rollout.active = []target{}, nil
				o.report.AddOns[0] = apply.AddOnReport{Name: "web", Inventory: 1, Removing: []apply.Waiting{{ID: id("a"), What: "its end"}}}
			},
			want: []string{"Rendered=False Progressing", "Applied=False Progressing", "Healthy=Unknown Unknown", "Ready=False Progressing", "Reconciling=True Progressing"},
		},
		"while the selection is not known what was rolled out is watched on": {
			change: func(o *outcome) { o.found.targets = nil },
			want:   []string{"Rendered=Unknown Unknown", "Applied=True Applied", "Healthy=True Ready", "Ready=False Unknown"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := good()
			c.change(&o)
			views := o.addOns()
			if diff := cmp.Diff(c.want, summary(views[0].conditions())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func unready(o *outcome) {
	o.report.AddOns[0].Ready = 0
	o.report.AddOns[0].Unready = []apply.Unready{{ID: id("a"), Status: "InProgress", Message: "0 of 1"}}
}

func TestConditionsOfAMember(t *testing.T) {
	refused := &sources.Error{Reason: sources.Unsigned, Err: errors.New("commit abc carries no signature")}
	for name, c := range map[string]struct {
		change func(*outcome)
		want   []string
	}{
		"all is well": {
			change: func(*outcome) {},
			want:   []string{"SourceReady=True Fetched", "Verified=True Verified", "Selected=True Selected", "Applied=True Applied", "SnapshotKept=True Kept", "Ready=True Ready"},
		},
		"a silent source is no part of Ready": {
			change: func(o *outcome) {
				o.found.contact = &sources.Error{Reason: sources.Unreachable, Err: errors.New("down")}
			},
			want: []string{"SourceReady=False Unreachable", "Verified=True Verified", "Selected=True Selected", "Applied=True Applied", "SnapshotKept=True Kept", "Ready=True Ready"},
		},
		"a source that is silent for too long is stale": {
			change: func(o *outcome) { o.found.contact, o.found.stale = errors.New("down"), true },
			want:   []string{"SourceReady=False Stale", "Verified=True Verified", "Selected=True Selected", "Applied=True Applied", "SnapshotKept=True Kept", "Ready=True Ready"},
		},
		"a refused head is no part of Ready": {
			change: func(o *outcome) { o.found.refusal = refused },
			want:   []string{"SourceReady=True Fetched", "Verified=False Unsigned", "Selected=True Selected", "Applied=True Applied", "SnapshotKept=True Kept", "Ready=True Ready"},
		},
		"a first head that is refused is all there is": {
			change: func(o *outcome) {
				*o = outcome{found: findings{head: "abc", refusal: refused}, now: noon}
			},
			want: []string{"SourceReady=True Fetched", "Verified=False Unsigned", "Selected=Unknown Progressing", "Applied=Unknown Progressing", "SnapshotKept=Unknown Progressing", "Ready=False Unsigned"},
		},
		"a selection that is not known needs a person": {
			change: func(o *outcome) {
				o.found.selectErr, o.found.targets = &sources.Error{Reason: sources.MissingLabel, Err: errors.New("region")}, nil
			},
			want: []string{"SourceReady=True Fetched", "Verified=True Verified", "Selected=False MissingLabel", "Applied=True Applied", "SnapshotKept=True Kept", "Ready=False MissingLabel", "Stalled=True MissingLabel"},
		},
		"an identity that differs is said and not followed": {
			change: func(o *outcome) { o.found.selection.Differs = []string{"label region: ap here, eu in the entry"} },
			want:   []string{"SourceReady=True Fetched", "Verified=True Verified", "Selected=True IdentityDiffers", "Applied=True Applied", "SnapshotKept=True Kept", "Ready=True Ready"},
		},
		"an identity that is lost is said, and the last one counts": {
			change: func(o *outcome) {
				o.found.told.err = &sources.Error{Reason: sources.IdentityMissing, Err: errors.New("gone")}
			},
			want: []string{"SourceReady=True Fetched", "Verified=True Verified", "Selected=True IdentityMissing", "Applied=True Applied", "SnapshotKept=True Kept", "Ready=True Ready"},
		},
		"an identity that never was there": {
			change: func(o *outcome) {
				missing := &sources.Error{Reason: sources.IdentityMissing, Err: errors.New("not there")}
				o.found.told, o.found.selectErr, o.found.selection, o.found.targets = told{err: missing}, missing, nil, nil
				o.rollout, o.report = rollout{}, apply.Report{}
			},
			want: []string{"SourceReady=True Fetched", "Verified=True Verified", "Selected=False IdentityMissing", "Applied=Unknown Progressing", "SnapshotKept=Unknown Progressing", "Ready=False IdentityMissing", "Stalled=True IdentityMissing"},
		},
		"an add-on that is not ready makes the member not ready": {
			change: func(o *outcome) { unready(o) },
			want:   []string{"SourceReady=True Fetched", "Verified=True Verified", "Selected=True Selected", "Applied=True Applied", "SnapshotKept=True Kept", "Ready=False Unhealthy", "Reconciling=True Progressing"},
		},
		"an add-on that is not applied makes the member not applied": {
			change: func(o *outcome) {
				o.report.AddOns[0].Failures = []apply.Failure{{ID: id("a"), Reason: apply.InvalidObject, Message: "no"}}
			},
			want: []string{"SourceReady=True Fetched", "Verified=True Verified", "Selected=True Selected", "Applied=False InvalidObject", "SnapshotKept=True Kept", "Ready=False InvalidObject", "Stalled=True InvalidObject"},
		},
		"a snapshot that is too large is said": {
			change: func(o *outcome) { o.snapshot = errSnapshotTooLarge },
			want:   []string{"SourceReady=True Fetched", "Verified=True Verified", "Selected=True Selected", "Applied=True Applied", "SnapshotKept=False TooLarge", "Ready=True Ready"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := good()
			c.change(&o)
			if diff := cmp.Diff(c.want, summary(o.memberConditions())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheAppliedRevisionIsTheVerifiedOneOnlyOnceAllOfItIsApplied(t *testing.T) {
	o := good()
	assert.Equal(t, o.found.verified.Commit, o.memberStatus(Config{}).AppliedRevision)
	o.rollout.blocked["web"] = "add-on base to be ready"
	assert.Empty(t, o.memberStatus(Config{}).AppliedRevision)
	o = good()
	o.found.targets = nil
	assert.Empty(t, o.memberStatus(Config{}).AppliedRevision, "what the newest selection wants is not known")
}

func TestStatusTextsAreCutAndListsAreBounded(t *testing.T) {
	o := good()
	for i := range 12 {
		o.report.AddOns[0].Failures = append(o.report.AddOns[0].Failures,
			apply.Failure{ID: id(fmt.Sprint(i)), File: "f", Reason: apply.Denied, Message: strings.Repeat("é", 2000)})
		o.report.Strays = append(o.report.Strays, id(fmt.Sprint(i)))
	}
	status := o.addOns()[0].addOnStatus()
	assert.Len(t, status.Failures, 5)
	assert.Equal(t, 12, status.Objects.Failed, "counts are exact")
	assert.LessOrEqual(t, len(status.Failures[0].Message), 512)
	assert.True(t, strings.HasSuffix(status.Failures[0].Message, "…"))
	for _, c := range status.Conditions {
		assert.LessOrEqual(t, len(c.Message), 512, c.Type)
		assert.NotContains(t, c.Message, "\uFFFD")
	}
	assert.Len(t, o.memberStatus(Config{}).Strays, 5)
}

func TestRenderFailuresNameFileLineAndObject(t *testing.T) {
	o := good()
	o.found.targets[0].err = errors.Join(
		&sources.Error{Reason: sources.RenderFailed, AddOn: "web", File: "addons/web/a.yaml", Line: 7, Object: "ConfigMap/a", Err: errors.New("apiVersion is missing")},
		errors.Join(&sources.Error{Reason: sources.RenderFailed, File: "addons/web/b.yaml", Err: errors.New("not YAML")}))
	got := o.addOns()[0].addOnStatus().Failures
	assert.Len(t, got, 2)
	assert.Equal(t, "addons/web/a.yaml:7", got[0].File)
	assert.Equal(t, "ConfigMap/a", got[0].Object)
	assert.Equal(t, "apiVersion is missing", got[0].Message)
	assert.Equal(t, "addons/web/b.yaml", got[1].File)
}

func TestTimeAloneTurnsUnhealthyIntoTimedOut(t *testing.T) {
	o := good()
	assert.Zero(t, o.untilTimeout(), "all is well")
	unready(&o)
	o.now = noon.Add(2 * time.Minute)
	assert.Equal(t, 3*time.Minute, o.untilTimeout())
	o.now = noon.Add(5 * time.Minute)
	assert.Zero(t, o.untilTimeout(), "it has timed out")
}

func TestConditionsKeepTheTimeOfTheirLastTransition(t *testing.T) {
	before := metav1.NewTime(noon.Add(-time.Hour))
	old := []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: before},
		{Type: "Applied", Status: metav1.ConditionFalse, Reason: "Denied", LastTransitionTime: before},
		{Type: "Healthy", Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: before},
	}
	next := []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready"},
		{Type: "Applied", Status: metav1.ConditionFalse, Reason: "InvalidObject"},
		{Type: "Healthy", Status: metav1.ConditionFalse, Reason: "Unhealthy"},
		{Type: "Held", Status: metav1.ConditionTrue, Reason: "PruneHeld"},
	}
	changed := carryTimes(old, next, noon)
	assert.Equal(t, []string{"Applied=False InvalidObject", "Healthy=False Unhealthy", "Held=True PruneHeld"}, summary(changed))
	assert.Equal(t, []time.Time{before.Time, before.Time, noon, noon},
		[]time.Time{next[0].LastTransitionTime.Time, next[1].LastTransitionTime.Time, next[2].LastTransitionTime.Time, next[3].LastTransitionTime.Time})
}
