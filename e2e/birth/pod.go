package birth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetling/fleetling/e2e/process"
)

// Pod is one that runs here.
type Pod struct {
	kubelet *Kubelet
	object  *corev1.Pod
	// root holds what the container sees of the Pod's own.
	root string

	mu      sync.Mutex
	process *process.Process
	started []time.Time
	status  corev1.PodStatus
}

// Image is its container's.
func (p *Pod) Image() string { return p.container().Image }

func (p *Pod) container() *corev1.Container { return &p.object.Spec.Containers[0] }

// keep brings the Pod to what it should be. What can't be done now is tried
// again: kubelet gives no container up.
func (p *Pod) keep(ctx context.Context) {
	err := runnable(p.object)
	if err == nil {
		err = p.sync(ctx)
	}
	if err == nil && !p.alive() {
		err = p.start()
	}
	if err == nil {
		err = p.Probe(ctx, p.container().ReadinessProbe)
	}
	// Written again with the next look where it failed.
	_ = p.report(ctx, err)
}

// report says in the Pod's status whether it is ready, where that has changed.
func (p *Pod) report(ctx context.Context, problem error) error {
	ready, message := corev1.ConditionTrue, ""
	if problem != nil {
		ready, message = corev1.ConditionFalse, problem.Error()
	}
	next := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: nodeAddress,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, Message: message}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: p.container().Name, Image: p.Image(), Ready: problem == nil, RestartCount: int32(max(0, len(p.Started())-1)), //nolint:gosec // a few
		}},
	}
	if reflect.DeepEqual(p.status, next) {
		return nil
	}
	pods := p.kubelet.client.CoreV1().Pods(p.object.Namespace)
	live, err := pods.Get(ctx, p.object.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	live.Status = *next.DeepCopy()
	if _, err := pods.UpdateStatus(ctx, live, metav1.UpdateOptions{}); err != nil {
		return err
	}
	p.status = next
	return nil
}

func (p *Pod) start() error {
	command, err := p.command(p.container().Args)
	if err != nil {
		return err
	}
	at := time.Now()
	started, err := process.Start(command)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.process, p.started = started, append(p.started, at)
	return nil
}

func (p *Pod) current() *process.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

func (p *Pod) alive() bool {
	running := p.current()
	return running != nil && running.Alive()
}

// end asks the container to end, as kubelet does.
func (p *Pod) end() {
	if running := p.current(); running != nil {
		_ = running.Stop() // how it ended is in its log
	}
}

// Crash ends the container at once; it is started again, as the same Pod.
func (p *Pod) Crash() {
	if running := p.current(); running != nil {
		running.Kill()
	}
}

// Started gives when the container was started, each time.
func (p *Pod) Started() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]time.Time(nil), p.started...)
}

// Log is what the container has printed.
func (p *Pod) Log() string { return filepath.Join(p.root, "log") }

// File reads one of the container's.
func (p *Pod) File(path string) ([]byte, error) { return os.ReadFile(p.inside(path)) }

// Probes asks for life and readiness as kubelet does.
func (p *Pod) Probes(ctx context.Context) error {
	return errors.Join(p.Probe(ctx, p.container().LivenessProbe), p.Probe(ctx, p.container().ReadinessProbe))
}

// Probe runs the command of a probe in the container.
func (p *Pod) Probe(ctx context.Context, probe *corev1.Probe) error {
	if probe == nil || probe.Exec == nil || len(probe.Exec.Command) == 0 {
		return errors.New("not a probe by exec")
	}
	command, err := p.command(probe.Exec.Command[1:])
	if err != nil {
		return err
	}
	ran := exec.CommandContext(ctx, command.Path, command.Args...)
	ran.Env = command.Env
	if out, err := ran.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", probe.Exec.Command, err, out)
	}
	return nil
}
