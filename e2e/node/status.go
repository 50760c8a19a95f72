package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podStatus is what a kubelet would report, once all went well, of a Pod with
// this address. down is why its containers don't run where they should, or nil.
// What others wrote into the status stays. A status that is right comes out as
// it went in, whatever the time.
func podStatus(pod *corev1.Pod, host, address netip.Addr, down error, now metav1.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	if status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed {
		return status
	}
	if status.StartTime == nil {
		status.StartTime = &now
	}
	status.ObservedGeneration = pod.Generation
	status.HostIP, status.HostIPs = host.String(), []corev1.HostIP{{IP: host.String()}}
	status.PodIP, status.PodIPs = address.String(), []corev1.PodIP{{IP: address.String()}}
	status.Phase = phase(pod)
	since := *status.StartTime
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		container := containerStatus(c, status.Phase, since)
		if down != nil && status.Phase == corev1.PodRunning {
			container.Ready, container.Started = false, new(false)
			container.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: down.Error()}}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, container)
	}
	status.InitContainerStatuses = nil
	for _, c := range pod.Spec.InitContainers {
		init := containerStatus(c, initPhase(c, status.Phase), since)
		init.Ready = status.Phase == corev1.PodRunning
		status.InitContainerStatuses = append(status.InitContainerStatuses, init)
	}
	for _, condition := range conditions(pod, status, down) {
		status.Conditions = setCondition(status.Conditions, condition, now)
	}
	return status
}

// phase is where the Pod ends up.
func phase(pod *corev1.Pod) corev1.PodPhase {
	unpullable := func(c corev1.Container) bool { return !pullable(c.Image) }
	switch {
	case slices.ContainsFunc(pod.Spec.InitContainers, unpullable), slices.ContainsFunc(pod.Spec.Containers, unpullable):
		return corev1.PodPending
	case pod.Spec.RestartPolicy == corev1.RestartPolicyAlways:
		return corev1.PodRunning
	default:
		return corev1.PodSucceeded
	}
}

// initPhase is where a container of the Pod's start ends up: it has run to its
// end before the others start, unless it is one that keeps running beside them.
func initPhase(c corev1.Container, pod corev1.PodPhase) corev1.PodPhase {
	sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	if pod == corev1.PodRunning && !sidecar {
		return corev1.PodSucceeded
	}
	return pod
}

// pullable says whether there could be such an image: hosts under .invalid
// don't exist.
func pullable(image string) bool {
	host, _, _ := strings.Cut(image, "/")
	name, _, _ := strings.Cut(host, ":")
	return !strings.HasSuffix(name, ".invalid")
}

// containerStatus reports a container that waits for an image, runs, or has ended well.
func containerStatus(c corev1.Container, phase corev1.PodPhase, since metav1.Time) corev1.ContainerStatus {
	running := phase == corev1.PodRunning
	status := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: running, Started: &running}
	switch phase {
	case corev1.PodRunning:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: since}
	case corev1.PodSucceeded:
		status.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: since, FinishedAt: since}
	default:
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
		if !pullable(c.Image) {
			status.State.Waiting = &corev1.ContainerStateWaiting{
				Reason: "ImagePullBackOff", Message: fmt.Sprintf("image %s: hosts under .invalid don't exist", c.Image),
			}
		}
	}
	return status
}

// conditions gives the kubelet's conditions for a Pod that has the status' phase.
func conditions(pod *corev1.Pod, status corev1.PodStatus, down error) []corev1.PodCondition {
	initialized, containers, reason := corev1.ConditionTrue, corev1.ConditionTrue, ""
	switch status.Phase {
	case corev1.PodSucceeded:
		containers, reason = corev1.ConditionFalse, "PodCompleted"
	case corev1.PodPending:
		containers, reason = corev1.ConditionFalse, "ContainersNotReady"
		if len(pod.Spec.InitContainers) > 0 {
			initialized = corev1.ConditionFalse
		}
	default: // it runs
		if down != nil {
			containers, reason = corev1.ConditionFalse, "ContainersNotReady"
		}
	}
	ready, why := containers, reason
	if ready == corev1.ConditionTrue && !gatesOpen(pod) {
		ready, why = corev1.ConditionFalse, "ReadinessGatesNotReady"
	}
	return []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue},
		{Type: corev1.PodInitialized, Status: initialized},
		{Type: corev1.ContainersReady, Status: containers, Reason: reason},
		{Type: corev1.PodReady, Status: ready, Reason: why},
	}
}

// gatesOpen says whether all that the Pod waits for besides its containers is
// true.
func gatesOpen(pod *corev1.Pod) bool {
	for _, gate := range pod.Spec.ReadinessGates {
		open := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
		if !open {
			return false
		}
	}
	return true
}

// setCondition puts a condition in its place; its time changes with its status.
func setCondition(all []corev1.PodCondition, wanted corev1.PodCondition, now metav1.Time) []corev1.PodCondition {
	at := slices.IndexFunc(all, func(c corev1.PodCondition) bool { return c.Type == wanted.Type })
	if at < 0 {
		wanted.LastTransitionTime = now
		return append(all, wanted)
	}
	wanted.LastTransitionTime = all[at].LastTransitionTime
	wanted.ObservedGeneration = all[at].ObservedGeneration
	if all[at].Status != wanted.Status {
		wanted.LastTransitionTime = now
	}
	all[at] = wanted
	return all
}
