package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetling/fleetling/e2e/world"
)

// badPod is a Pod and the policy of the example that refuses it.
type badPod struct {
	policy string
	pod    *corev1.Pod
}

func badPods() []badPod {
	return []badPod{
		{"no-privileged-pods", podOf("privileged", "registry.example.com/shell:1", true)},
		{"images-from-our-registry", podOf("foreign", "docker.io/library/shell:1", false)},
	}
}

func podOf(name, image string, privileged bool) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "shell", Image: image, SecurityContext: &corev1.SecurityContext{Privileged: &privileged},
		}}},
	}
}

// refusePods tries them in both clusters, as the administrator.
func (d *demo) refusePods(ctx context.Context) error {
	for _, bad := range badPods() {
		answers := make([]string, len(d.members))
		err := d.each(ctx, func(ctx context.Context, i int, m *world.Member) error {
			var err error
			answers[i], err = bad.tryIn(ctx, m)
			return err
		})
		if err != nil {
			return err
		}
		for i, m := range d.members {
			d.printf("%s: %s", m.Name(), answers[i])
		}
	}
	return nil
}

// tryIn gives the API server's refusal. Any other answer is an error.
func (b badPod) tryIn(ctx context.Context, m *world.Member) (string, error) {
	err := m.Client.Create(ctx, b.pod.DeepCopy())
	switch {
	case err == nil:
		return "", fmt.Errorf("%s: Pod %s was taken", m.Name(), b.pod.Name)
	case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), b.policy):
		return "", fmt.Errorf("%s: Pod %s was not refused by policy %s: %w", m.Name(), b.pod.Name, b.policy, err)
	}
	return err.Error(), nil
}
