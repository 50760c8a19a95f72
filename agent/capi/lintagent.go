package capi

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// birthTaints are on a new node until what the agent brings has initialized it.
func birthTaints() []string {
	return []string{
		"node.cluster.x-k8s.io/uninitialized",
		"node.cloudprovider.kubernetes.io/uninitialized",
		"node.kubernetes.io/not-ready",
		"node.kubernetes.io/network-unavailable",
		"node-role.kubernetes.io/control-plane",
	}
}

// agent looks whether our Deployment can run before there is a network.
func (s *sending) agent(o inside) {
	add := func(format string, args ...any) { s.add(o.source, o.place, format, args...) }
	var deployment appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object.Object, &deployment); err != nil {
		add("is not a Deployment that Kubernetes reads")
		return
	}
	pod := deployment.Spec.Template.Spec
	if !pod.HostNetwork {
		add("hostNetwork is off: without CNI the Pod never starts; lay component manifests/birth over it")
	}
	if pod.DNSPolicy != corev1.DNSDefault {
		add("dnsPolicy is %q: there is no cluster DNS yet; write Default", pod.DNSPolicy)
	}
	for _, taint := range birthTaints() {
		if !slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) }) {
			add("it does not tolerate %s, which new nodes have: add {key: %s, operator: Exists}", taint, taint)
		}
	}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		if len(container.Ports) > 0 {
			add("container %s has a fixed port: it is one of the node's; take ports away", container.Name)
		}
		for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe, container.StartupProbe} {
			if probe != nil && probe.Exec == nil {
				add("container %s has a probe that needs a port: probe by exec", container.Name)
			}
		}
	}
}

// tolerates tells whether all effects of a taint are tolerated, for ever.
func tolerates(t corev1.Toleration, taint string) bool {
	return t.Operator == corev1.TolerationOpExists && (t.Key == taint || t.Key == "") && t.Effect == "" && t.TolerationSeconds == nil
}
