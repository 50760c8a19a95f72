package node

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

var errDown = errors.New("it doesn't run")

func TestRuntimeIsAskedForPodsThatStay(t *testing.T) {
	for name, test := range map[string]struct {
		spec corev1.PodSpec
		want error
	}{
		"one that stays": {corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways}, errDown},
		"one that ends":  {corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}, nil},
		"one that can't be pulled": {corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Image: "registry.invalid/a"}},
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: test.spec}
			asked := &Node{options: Options{Runtime: &runtime{}}}
			require.ErrorIs(t, asked.up(t.Context(), pod, netip.Addr{}), test.want)
			require.NoError(t, (&Node{}).up(t.Context(), pod, netip.Addr{}), "nobody to ask")
		})
	}
}

func TestPodHasTheGraceOfItsDeletion(t *testing.T) {
	name := cache.NewObjectName("shop", "one")
	r := &runtime{}
	asked := &Node{options: Options{Runtime: r}}
	pod := &corev1.Pod{}
	assert.Zero(t, grace(pod))
	pod.DeletionGracePeriodSeconds = new(int64(7))
	assert.False(t, asked.ended(name, grace(pod)))
	assert.Equal(t, 7*time.Second, r.grace)
	r.gone = true
	assert.True(t, asked.ended(name, grace(pod)))
	assert.True(t, (&Node{}).ended(name, time.Hour), "nothing of it runs")

	// What still runs isn't taken away from the API server: there is none here.
	r.gone = false
	require.NoError(t, asked.remove(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one"}}))
}

// runtime runs nothing.
type runtime struct {
	grace time.Duration
	gone  bool
}

func (*runtime) Run(context.Context, *corev1.Pod, netip.Addr) error { return errDown }

func (r *runtime) End(_ cache.ObjectName, grace time.Duration) bool {
	r.grace = grace
	return r.gone
}

func (*runtime) Changed() <-chan cache.ObjectName { return nil }
