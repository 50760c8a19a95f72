package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/apply"
)

func TestC4BirthIsWhatHappenedInside(t *testing.T) {
	at := new(metav1.NewTime(noon))
	for name, c := range map[string]struct {
		change func(*outcome)
		want   v1alpha1.Birth
	}{
		"an agent that was delivered and knows nothing": {
			func(o *outcome) { *o = outcome{now: noon} }, v1alpha1.Birth{APIUp: at},
		},
		"verified, and nothing applied yet": {
			func(o *outcome) {
				o.report.AddOns[0].Waiting = []apply.Waiting{{ID: id("a"), What: "its kind"}}
				o.report.AddOns[0].Ready = 0
			}, v1alpha1.Birth{APIUp: at, Identity: at, Verified: at},
		},
		"applied, and not healthy yet": {
			func(o *outcome) { unready(o) }, v1alpha1.Birth{APIUp: at, Identity: at, Verified: at, AddOnApplied: at},
		},
		"all is ready": {
			func(*outcome) {}, v1alpha1.Birth{APIUp: at, Identity: at, Verified: at, AddOnApplied: at, Ready: at},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := good()
			c.change(&o)
			if diff := cmp.Diff(c.want, o.birth()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			assert.Equal(t, c.want, *o.memberStatus(Config{}).Birth)
		})
	}
}

func TestATimeOfBirthIsWrittenOnce(t *testing.T) {
	o := good()
	unready(&o)
	first := o.birth()
	require.Nil(t, first.Ready)
	later := good()
	later.now = noon.Add(time.Hour)
	second := later.birth()
	carryBirth(&first, &second)
	assert.Equal(t, first.APIUp, second.APIUp)
	assert.Equal(t, first.AddOnApplied, second.AddOnApplied)
	assert.Equal(t, new(metav1.NewTime(noon.Add(time.Hour))), second.Ready)

	lost := outcome{now: noon.Add(2 * time.Hour)}.birth()
	carryBirth(&second, &lost)
	assert.Equal(t, second, lost, "what comes undone does not undo it")
	carryBirth(nil, &lost)
	assert.Equal(t, second, lost)
}
