package birth

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/harness"
)

// syncInterval is how often Pods and mounted objects are looked at, and readiness
// is asked for; kubelet takes up to a minute for the first, and for the second
// what the probe says.
const syncInterval = time.Second

// Workload is the Deployment whose Pods a Kubelet runs.
type Workload struct {
	Namespace, Deployment string
	// Images are the programs by the image that they stand for. Any other image
	// can't be pulled.
	Images map[string]string
}

// Kubelet runs the Pods of one Deployment, one container each: it restarts what
// has ended, keeps volumes as their objects are, and says in the Pod's status
// whether it is ready.
type Kubelet struct {
	cluster  *cluster.Cluster
	client   kubernetes.Interface
	workload Workload
	dir      string

	cancel context.CancelFunc
	done   sync.WaitGroup

	mu sync.Mutex
	// pods are those that run, the oldest first.
	pods []*Pod
}

// Run waits for the first Pod and starts it; what Pods see is in dir. ctx bounds
// only the start. Whoever starts it stops it.
func Run(ctx context.Context, c *cluster.Cluster, workload Workload, dir string) (*Kubelet, error) {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return nil, err
	}
	k := &Kubelet{cluster: c, client: client, workload: workload, dir: dir}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k.cancel = cancel
	k.done.Go(func() { k.run(running) })
	err = harness.Eventually(ctx, func(context.Context) error {
		if pod := k.Pod(); pod == nil || len(pod.Started()) == 0 {
			return fmt.Errorf("no Pod of Deployment %s runs yet", workload.Deployment)
		}
		return nil
	})
	if err != nil {
		k.Stop()
		return nil, fmt.Errorf("kubelet: %w", err)
	}
	return k, nil
}

// run keeps the Pods until ctx ends.
func (k *Kubelet) run(ctx context.Context) {
	ticker := time.NewTicker(syncInterval)
	defer ticker.Stop()
	for {
		// An API server that is away leaves them as they are, as kubelet does.
		if wanted, err := k.list(ctx); err == nil {
			k.endOthers(wanted)
			k.take(wanted)
		}
		for _, pod := range k.running() {
			pod.keep(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// list gives what the Deployment's selector selects.
func (k *Kubelet) list(ctx context.Context) ([]corev1.Pod, error) {
	wanted, err := k.client.AppsV1().Deployments(k.workload.Namespace).Get(ctx, k.workload.Deployment, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	selector := metav1.FormatLabelSelector(wanted.Spec.Selector)
	pods, err := k.client.CoreV1().Pods(k.workload.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}

// endOthers ends the Pods that are not wanted any more. They are on no node, so
// the API server has deleted them at once.
func (k *Kubelet) endOthers(wanted []corev1.Pod) {
	uids := map[types.UID]bool{}
	for _, pod := range wanted {
		uids[pod.UID] = true
	}
	for _, pod := range k.running() {
		if !uids[pod.object.UID] {
			pod.end()
			k.forget(pod)
		}
	}
}

func (k *Kubelet) forget(pod *Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = slices.DeleteFunc(k.pods, func(p *Pod) bool { return p == pod })
}

// take adds the Pods that are new.
func (k *Kubelet) take(wanted []corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range wanted {
		if !slices.ContainsFunc(k.pods, func(p *Pod) bool { return p.object.UID == wanted[i].UID }) {
			k.pods = append(k.pods, &Pod{kubelet: k, object: &wanted[i], root: filepath.Join(k.dir, string(wanted[i].UID))})
		}
	}
}

func (k *Kubelet) running() []*Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.pods)
}

// Stop ends all as a power cut does.
func (k *Kubelet) Stop() {
	k.cancel()
	k.done.Wait()
	for _, pod := range k.running() {
		pod.Crash()
	}
}

// Pod is the oldest that runs, nil before there is one.
func (k *Kubelet) Pod() *Pod {
	pods := k.running()
	if len(pods) == 0 {
		return nil
	}
	return pods[0]
}

// Images are those of the Pods that run, the oldest first.
func (k *Kubelet) Images() []string {
	var images []string
	for _, pod := range k.running() {
		images = append(images, pod.Image())
	}
	return images
}

// runnable tells why a Pod can't be run here.
func runnable(pod *corev1.Pod) error {
	if n := len(pod.Spec.Containers) + len(pod.Spec.InitContainers); n != 1 {
		return fmt.Errorf("%d containers, and one can be run here", n)
	}
	if c := pod.Spec.SecurityContext; c == nil || c.RunAsUser == nil || c.RunAsGroup == nil || c.FSGroup == nil {
		return errors.New("it does not say user, group and fsGroup")
	}
	return nil
}
