package pods

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetling/fleetling/e2e/network"
	"github.com/fleetling/fleetling/e2e/process"
)

// pause is between the end of a container and its next start.
const pause = time.Second

// pod is a Pod that has a network namespace.
type pod struct {
	object    *corev1.Pod
	address   netip.Addr
	namespace *network.Namespace

	mu         sync.Mutex
	ending     bool
	containers map[string]*process.Process
	// ended is when each container was seen to have ended.
	ended map[string]time.Time
}

func newPod(object *corev1.Pod, address netip.Addr, namespace *network.Namespace) *pod {
	return &pod{
		object: object, address: address, namespace: namespace,
		containers: map[string]*process.Process{}, ended: map[string]time.Time{},
	}
}

// run starts a container that doesn't run. One that has ended is an error
// until it is started again.
func (p *pod) run(r *Runtime, c corev1.Container) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending {
		return errors.New("the Pod is being deleted")
	}
	running := p.containers[c.Name]
	if running != nil && running.Alive() {
		return nil
	}
	if running != nil {
		if p.ended[c.Name].IsZero() {
			p.ended[c.Name] = time.Now()
		}
		if time.Since(p.ended[c.Name]) < pause {
			return running.Explain(how(running.Wait()))
		}
	}
	command, err := p.command(c)
	if err != nil {
		return err
	}
	command.Log = r.log(p.object, c.Name)
	started, err := process.Start(command)
	if err != nil {
		return err
	}
	p.containers[c.Name] = started
	delete(p.ended, c.Name)
	r.group.Go(func() {
		<-started.Done()
		r.tell(cache.MetaObjectToName(p.object))
	})
	return nil
}

// how is an error that says how a process has ended.
func how(err error) error {
	if err == nil {
		return errors.New("ended with exit code 0")
	}
	return fmt.Errorf("ended: %w", err)
}

// begin says whether the Pod's end begins now: no container is started any more.
func (p *pod) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.ending
	p.ending = true
	return first
}

// end asks all processes to end and kills what is left after the grace.
func (p *pod) end(grace time.Duration) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	running := p.processes()
	for _, one := range running {
		// The whole group: an error says that it has ended.
		_ = syscall.Kill(-one.Pid(), syscall.SIGTERM)
	}
	for _, one := range running {
		select {
		case <-one.Done():
		case <-timer.C:
			p.kill()
		}
	}
}

// kill ends all processes at once: with the first of a PID namespace all in it end.
func (p *pod) kill() {
	for _, one := range p.processes() {
		one.Kill()
	}
}

func (p *pod) processes() []*process.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*process.Process
	for _, one := range p.containers {
		all = append(all, one)
	}
	return all
}
