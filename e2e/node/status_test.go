package node

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStatusIsConsistentWithTheSpec(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	app := corev1.Container{Name: "app", Image: "app:1"}
	setup := corev1.Container{Name: "setup", Image: "setup:1"}
	sidecar := corev1.Container{Name: "sidecar", Image: "sidecar:1", RestartPolicy: &always}
	unpullable := corev1.Container{Name: "bad", Image: "registry.invalid/bad:1"}
	for name, test := range map[string]struct {
		spec  corev1.PodSpec
		phase corev1.PodPhase
		// states by container: state and ready.
		states map[string]string
		// conditions that are true.
		conditions []corev1.PodConditionType
	}{
		"a server runs, what prepares it has ended, its sidecar runs": {
			spec:   corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, InitContainers: []corev1.Container{setup, sidecar}, Containers: []corev1.Container{app}},
			phase:  corev1.PodRunning,
			states: map[string]string{"setup": "terminated ready", "sidecar": "running ready", "app": "running ready"},
			conditions: []corev1.PodConditionType{
				corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
			},
		},
		"a task has ended, with all its containers": {
			spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, InitContainers: []corev1.Container{setup, sidecar}, Containers: []corev1.Container{app}},
			phase:      corev1.PodSucceeded,
			states:     map[string]string{"setup": "terminated", "sidecar": "terminated", "app": "terminated"},
			conditions: []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodInitialized},
		},
		"one image that can't be pulled stops all": {
			spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{app, unpullable}},
			phase:      corev1.PodPending,
			states:     map[string]string{"app": "waiting PodInitializing", "bad": "waiting ImagePullBackOff"},
			conditions: []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodInitialized},
		},
		"one that prepares keeps it from being initialized": {
			spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, InitContainers: []corev1.Container{unpullable}, Containers: []corev1.Container{app}},
			phase:      corev1.PodPending,
			states:     map[string]string{"bad": "waiting ImagePullBackOff", "app": "waiting PodInitializing"},
			conditions: []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReadyToStartContainers},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: test.spec}
			got := statusAt(pod, 0)
			assert.Equal(t, test.phase, got.Phase)
			if diff := cmp.Diff(test.states, states(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var conditions []corev1.PodConditionType
			for _, c := range got.Conditions {
				if c.Status == corev1.ConditionTrue {
					conditions = append(conditions, c.Type)
				}
			}
			assert.Equal(t, test.conditions, conditions)

			pod.Status = got
			if diff := cmp.Diff(got, statusAt(pod, time.Hour)); diff != "" {
				t.Errorf("an hour later it is another: -first +second:\n%s", diff)
			}
		})
	}
}

func TestStatusKeepsWhatOthersWrote(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways}}
	theirs := corev1.PodCondition{Type: "example.com/theirs", Status: corev1.ConditionTrue, Message: "kept"}
	pod.Status = corev1.PodStatus{QOSClass: corev1.PodQOSGuaranteed, Conditions: []corev1.PodCondition{theirs}}
	got := statusAt(pod, 0)
	assert.Equal(t, corev1.PodQOSGuaranteed, got.QOSClass)
	assert.Contains(t, got.Conditions, theirs)
	assert.Len(t, pod.Status.Conditions, 1, "the Pod itself is the cache's and is not changed")
}

func TestStatusThatIsFinalStays(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways}, Status: corev1.PodStatus{Phase: phase, Message: "evicted"}}
		assert.Equal(t, pod.Status, statusAt(pod, 0))
	}
}

// kube-controller-manager does that when a node seems lost.
func TestReadyThatWasTakenAwayIsGivenBack(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways}}
	pod.Status = statusAt(pod, 0)
	ready := &pod.Status.Conditions[len(pod.Status.Conditions)-1]
	ready.Status, ready.Reason = corev1.ConditionFalse, "NodeNotReady"
	got := statusAt(pod, time.Hour)
	last := got.Conditions[len(got.Conditions)-1]
	assert.Equal(t, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(time.Hour)}, last)
}

func TestPodWhoseContainersDoNotRunIsNotReady(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "main", Image: "nginx"}},
	}}
	host, address := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.9")
	pod.Status = podStatus(pod, host, address, nil, at(0))
	assert.Equal(t, map[string]string{"main": "running ready"}, states(pod.Status))

	down := errors.New("container main ended: exit status 3")
	pod.Status = podStatus(pod, host, address, down, at(time.Minute))
	assert.Equal(t, corev1.PodRunning, pod.Status.Phase)
	assert.Equal(t, map[string]string{"main": "waiting CrashLoopBackOff"}, states(pod.Status))
	assert.Equal(t, down.Error(), pod.Status.ContainerStatuses[0].State.Waiting.Message)
	last := pod.Status.Conditions[len(pod.Status.Conditions)-1]
	assert.Equal(t, corev1.PodCondition{
		Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", LastTransitionTime: at(time.Minute),
	}, last)
	assert.Equal(t, pod.Status, podStatus(pod, host, address, down, at(time.Hour)), "it stays as it is")
}

func TestPullableImages(t *testing.T) {
	for image, want := range map[string]bool{
		"nginx": true, "nginx:1": true, "library/nginx": true, "registry.example.com:5000/a/b:1": true, "example.com/invalid/a.invalid": true,
		"registry.invalid/a": false, "registry.invalid:5000/a": false, "a.b.invalid/a@sha256:00": false,
	} {
		assert.Equal(t, want, pullable(image), image)
	}
}

func at(since time.Duration) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(since))
}

func statusAt(pod *corev1.Pod, since time.Duration) corev1.PodStatus {
	return podStatus(pod, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.9"), nil, at(since))
}

func states(status corev1.PodStatus) map[string]string {
	got := map[string]string{}
	for _, c := range append(status.InitContainerStatuses, status.ContainerStatuses...) {
		switch {
		case c.State.Running != nil:
			got[c.Name] = "running"
		case c.State.Terminated != nil:
			got[c.Name] = "terminated"
		case c.State.Waiting != nil:
			got[c.Name] = "waiting " + c.State.Waiting.Reason
		}
		if c.Ready {
			got[c.Name] += " ready"
		}
	}
	return got
}
