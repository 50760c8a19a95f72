package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
)

func TestAPauseIsSetAndEndedBesideWhatTheAgentOwns(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	member := &v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.Self, Annotations: map[string]string{v1alpha1.ReconcileAtAnnotation: "x"}}}
	member.Status.SelectionDigest = "sha256:s"
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(member).WithStatusSubresource(member).Build()
	var out bytes.Buffer
	world := World{Out: &out, Err: &out}
	read := func() *v1alpha1.Member {
		t.Helper()
		var m v1alpha1.Member
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: v1alpha1.Self}, &m))
		return &m
	}
	until := time.Date(2026, 5, 1, 12, 0, 0, 5, time.UTC)
	require.NoError(t, setPause(t.Context(), c, world, until, "a look"))
	m := read()
	require.NotNil(t, m.Spec.Pause)
	assert.Equal(t, "a look", m.Spec.Pause.Reason)
	assert.True(t, m.Spec.Pause.Until.Time.Equal(until.Truncate(time.Second)))
	assert.Equal(t, "x", m.Annotations[v1alpha1.ReconcileAtAnnotation])
	assert.Equal(t, "sha256:s", m.Status.SelectionDigest)
	assert.Contains(t, out.String(), "paused until 2026-05-01T12:00:00Z")

	require.NoError(t, setPause(t.Context(), c, world, until.Add(time.Hour), "longer"))
	assert.Equal(t, "longer", read().Spec.Pause.Reason)

	m = read()
	m.Spec.Pause.Reason = "by kubectl"
	require.NoError(t, c.Update(t.Context(), m, client.FieldOwner("kubectl-edit")))
	require.NoError(t, endPause(t.Context(), c, world))
	assert.Nil(t, read().Spec.Pause, "whoever has set it")
	require.NoError(t, endPause(t.Context(), c, world), "twice is once")
}

func TestAPauseNeedsAnEndAndAReason(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing said":    {nil, "--for"},
		"no reason":       {[]string{"--for", "2h"}, "--reason"},
		"too long":        {[]string{"--for", "73h", "--reason", "x"}, "at most 72h"},
		"not forward":     {[]string{"--for", "-1h", "--reason", "x"}, "--for"},
		"end and another": {[]string{"--end", "--for", "1h"}, "--end stands alone"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			code := Run(t.Context(), append([]string{"pause"}, c.args...), World{Out: &out, Err: &out})
			assert.Equal(t, 2, code)
			assert.Contains(t, out.String(), c.want)
		})
	}
	assert.NoError(t, checkPause(false, 72*time.Hour, "x"))
}

func TestStatusShowsThePause(t *testing.T) {
	o := seen()
	o.Member.Status.Conditions = append(o.Member.Status.Conditions, metav1.Condition{Type: "Paused", Status: "True", Reason: "Paused", Message: "until noon (a look)"})
	var out bytes.Buffer
	require.NoError(t, o.show(&out, ""))
	line := out.String()[strings.Index(out.String(), "Paused:"):]
	line, _, _ = strings.Cut(line, "\n")
	assert.Equal(t, "Paused:       True (Paused): until noon (a look)", line)
}
