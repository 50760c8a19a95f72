package agent

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrlfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/apply"
)

// askedFor is a Member with a pause until then, set when entries say.
func askedFor(until time.Time, set ...metav1.ManagedFieldsEntry) *v1alpha1.Member {
	m := &v1alpha1.Member{}
	m.Name, m.ManagedFields = v1alpha1.Self, set
	m.Spec.Pause = &v1alpha1.Pause{Until: metav1.NewTime(until), Reason: "a look"}
	return m
}

func setBy(manager, fields string, at time.Time) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Time: new(metav1.NewTime(at)), FieldsV1: metav1.NewFieldsV1(fields)}
}

const pauseFields = `{"f:spec":{"f:pause":{".":{},"f:until":{}}}}`

func TestPauseOf(t *testing.T) {
	at := func(set time.Time) metav1.ManagedFieldsEntry { return setBy("fleetling-pause", pauseFields, set) }
	status := setBy("fleetling", `{"f:status":{"f:conditions":{}}}`, noon)
	for name, c := range map[string]struct {
		member *v1alpha1.Member
		want   *pause
	}{
		"nobody asks": {&v1alpha1.Member{}, nil},
		"two hours":   {askedFor(noon.Add(2*time.Hour), at(noon)), &pause{until: noon.Add(2 * time.Hour), reason: "a look"}},
		"it is over":  {askedFor(noon, at(noon.Add(-time.Hour))), nil},
		"72 hours, set just now": {
			askedFor(noon.Add(72*time.Hour+time.Second), at(noon)), &pause{until: noon.Add(72*time.Hour + time.Second), reason: "a look"},
		},
		"longer than that does not hold": {
			askedFor(noon.Add(73*time.Hour), at(noon)), &pause{until: noon.Add(73 * time.Hour), reason: "a look", tooLong: true},
		},
		"what was set too long does not hold when it has become shorter": {
			askedFor(noon.Add(time.Hour), at(noon.Add(-72*time.Hour)), status), &pause{until: noon.Add(time.Hour), reason: "a look", tooLong: true},
		},
		"the last one who set it counts": {
			askedFor(noon.Add(time.Hour), at(noon.Add(-100*time.Hour)), setBy("kubectl-edit", pauseFields, noon.Add(-time.Hour))),
			&pause{until: noon.Add(time.Hour), reason: "a look"},
		},
		"where nobody has noted the time it is now": {
			askedFor(noon.Add(time.Hour), setBy("x", `not JSON`, noon)), &pause{until: noon.Add(time.Hour), reason: "a look"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, pauseOf(c.member, noon), cmp.AllowUnexported(pause{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestThePauseEndsByItself(t *testing.T) {
	p := pauseOf(askedFor(noon.Add(time.Hour)), noon)
	assert.Equal(t, time.Hour, p.left(noon))
	assert.Zero(t, (*pause)(nil).left(noon))
	assert.Zero(t, (&pause{until: noon.Add(time.Hour), tooLong: true}).left(noon))
	assert.Nil(t, pauseOf(askedFor(noon.Add(time.Hour)), noon.Add(time.Hour)))
}

// pausedOutcome has two objects to apply and one to delete.
func pausedOutcome() outcome {
	o := good()
	o.pause = &pause{until: noon.Add(time.Hour), reason: "a look"}
	o.report.AddOns[0].Ready = 0
	o.report.AddOns[0].Waiting = []apply.Waiting{{ID: id("a"), What: apply.Untouched}, {ID: id("b"), What: apply.Untouched}, {ID: id("c"), What: "its kind"}}
	o.report.AddOns[0].Removing = []apply.Waiting{{ID: id("d"), What: apply.Untouched}}
	o.now = noon.Add(10 * time.Minute)
	return o
}

func TestAPauseIsSeenWithWhatWaitsForItsEnd(t *testing.T) {
	assert.Empty(t, good().paused(), "only while there is one")
	o := pausedOutcome()
	want := metav1.Condition{
		Type: "Paused", Status: "True", Reason: "Paused",
		Message: "until 2026-05-01T13:00:00Z (a look); what waits: web has 2 to apply and 1 to delete",
	}
	assert.Equal(t, []metav1.Condition{want}, o.paused())
	assert.Contains(t, summary(o.memberConditions()), "Paused=True Paused")
	assert.Contains(t, summary(o.addOns()[0].conditions()), "Applied=False Paused")
	assert.NotContains(t, strings.Join(summary(o.addOns()[0].conditions()), " "), "TimedOut", "the pause takes nobody's time")
	assert.Zero(t, o.untilTimeout())

	o.pause.tooLong = true
	assert.Contains(t, summary(o.memberConditions()), "Paused=False PauseTooLong")
	calm := good()
	calm.pause = &pause{until: noon.Add(time.Hour), reason: "a look"}
	assert.Contains(t, calm.paused()[0].Message, "what waits: nothing")
	assert.Contains(t, summary(calm.memberConditions()), "Ready=True Ready", "a pause alone is no fault")
}

func TestThePauseIsAMetric(t *testing.T) {
	m, err := newMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	m.observe(pausedOutcome())
	assert.InDelta(t, 1, testutil.ToFloat64(m.paused), 0)
	m.observe(good())
	assert.InDelta(t, 0, testutil.ToFloat64(m.paused), 0)
}

func TestTheEndOfAPauseIsAnEventAlsoAfterARestart(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	scheme, err := newScheme()
	require.NoError(t, err)
	member := askedFor(noon.Add(time.Hour))
	member.Status.Conditions = pausedOutcome().paused()
	writer := &statusWriter{events: eventWriter{recorder}, client: ctrlfake.NewClientBuilder().WithScheme(scheme).WithObjects(member).WithStatusSubresource(member).Build()}
	p := &passLoop{status: writer}
	p.over(pausedOutcome())
	assert.Empty(t, recorder.Events)
	p.over(good())
	const want = "Normal PauseOver the pause is over: it was until 2026-05-01T13:00:00Z (a look); what waits: web has 2 to apply and 1 to delete"
	require.Len(t, recorder.Events, 1)
	assert.Equal(t, want, <-recorder.Events)
	p.over(good())
	assert.Empty(t, recorder.Events, "once")

	restarted := &passLoop{status: writer}
	asked, err := restarted.readPause(t.Context(), noon.Add(2*time.Hour))
	require.NoError(t, err)
	assert.Nil(t, asked)
	restarted.over(good())
	require.Len(t, recorder.Events, 1)
	assert.Equal(t, want, <-recorder.Events)
}

func TestThePauseOfOthersIsNoDifferenceInStatusAndIsNotSentBack(t *testing.T) {
	asked := askedFor(noon.Add(time.Hour))
	next := &v1alpha1.Member{TypeMeta: typeMeta("Member"), ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.Self}}
	assert.True(t, sameStatus(asked, next))
	text, err := json.Marshal(v1alpha1.Member{})
	require.NoError(t, err)
	assert.Contains(t, string(text), `"spec":{}`, "why apply takes it out")
}
