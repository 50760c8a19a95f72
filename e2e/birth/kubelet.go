package birth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/process"
)

// syncInterval is how often mounted objects are looked at; kubelet takes up to a
// minute.
const syncInterval = time.Second

// Kubelet runs the one container of one Pod, restarts it when it has ended, and
// keeps its volumes as their objects are.
type Kubelet struct {
	cluster *cluster.Cluster
	client  kubernetes.Interface
	pod     *corev1.Pod
	binary  string
	root    string

	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	process *process.Process
	started []time.Time
}

// Run waits for the Pod of a Deployment, and runs binary as its image's program;
// what the Pod sees is in dir. ctx bounds only the start. Whoever starts it stops
// it.
func Run(ctx context.Context, workload *cluster.Cluster, namespace, deployment, binary, dir string) (*Kubelet, error) {
	client, err := kubernetes.NewForConfig(workload.Config())
	if err != nil {
		return nil, err
	}
	k := &Kubelet{cluster: workload, client: client, binary: binary, root: dir}
	err = harness.Eventually(ctx, func(ctx context.Context) error {
		if err := k.find(ctx, namespace, deployment); err != nil {
			return err
		}
		return k.sync(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("kubelet: %w", err)
	}
	if err := k.start(); err != nil {
		return nil, fmt.Errorf("kubelet: %w", err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k.cancel = cancel
	k.done.Go(func() { k.run(running) })
	return k, nil
}

// find takes the first Pod that the Deployment's selector selects.
func (k *Kubelet) find(ctx context.Context, namespace, deployment string) error {
	wanted, err := k.client.AppsV1().Deployments(namespace).Get(ctx, deployment, metav1.GetOptions{})
	if err != nil {
		return err
	}
	selector := metav1.FormatLabelSelector(wanted.Spec.Selector)
	pods, err := k.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return err
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("no Pod of Deployment %s yet", deployment)
	}
	k.pod = &pods.Items[0]
	if n := len(k.pod.Spec.Containers) + len(k.pod.Spec.InitContainers); n != 1 {
		return fmt.Errorf("Pod %s has %d containers, and one can be run here", k.pod.Name, n)
	}
	if c := k.pod.Spec.SecurityContext; c == nil || c.RunAsUser == nil || c.RunAsGroup == nil || c.FSGroup == nil {
		return fmt.Errorf("Pod %s does not say user, group and fsGroup", k.pod.Name)
	}
	return nil
}

// run keeps volumes and container until ctx ends.
func (k *Kubelet) run(ctx context.Context) {
	ticker := time.NewTicker(syncInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// An API server that is away leaves them as they are, as kubelet does.
		_ = k.sync(ctx)
		if !k.current().Alive() {
			// What can't be started now is tried again: kubelet gives no container up.
			_ = k.start()
		}
	}
}

// Stop ends the container as a power cut does, and keeps nothing any more.
func (k *Kubelet) Stop() {
	k.cancel()
	k.done.Wait()
	k.current().Kill()
}

// Crash ends the container; it is started again, as the same Pod.
func (k *Kubelet) Crash() { k.current().Kill() }

// Pod is the one that runs.
func (k *Kubelet) Pod() *corev1.Pod { return k.pod }

// Started gives when the container was started, each time.
func (k *Kubelet) Started() []time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]time.Time(nil), k.started...)
}

// Log is what the container has printed.
func (k *Kubelet) Log() string { return filepath.Join(k.root, "log") }

// Probe runs the command of a probe in the container.
func (k *Kubelet) Probe(ctx context.Context, probe *corev1.Probe) error {
	if probe == nil || probe.Exec == nil || len(probe.Exec.Command) == 0 {
		return errors.New("not a probe by exec")
	}
	command, err := k.command(probe.Exec.Command[1:])
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

func (k *Kubelet) current() *process.Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.process
}

func (k *Kubelet) start() error {
	command, err := k.command(k.pod.Spec.Containers[0].Args)
	if err != nil {
		return err
	}
	at := time.Now()
	started, err := process.Start(command)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.process, k.started = started, append(k.started, at)
	return nil
}

// sync brings all volumes to what their objects are.
func (k *Kubelet) sync(ctx context.Context) error {
	var problems []error
	for _, mount := range k.pod.Spec.Containers[0].VolumeMounts {
		for _, volume := range k.pod.Spec.Volumes {
			if volume.Name != mount.Name {
				continue
			}
			held, err := k.content(ctx, volume.VolumeSource)
			if err == nil {
				err = held.write(k.inside(mount.MountPath))
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("volume %s: %w", volume.Name, err))
			}
		}
	}
	return errors.Join(problems...)
}

func (k *Kubelet) inside(path string) string { return filepath.Join(k.root, path) }

// content gives what a volume holds. An optional object that is not there is no
// file.
func (k *Kubelet) content(ctx context.Context, v corev1.VolumeSource) (content, error) {
	core := k.client.CoreV1()
	made := content{group: int(*k.pod.Spec.SecurityContext.FSGroup)}
	switch {
	case v.EmptyDir != nil:
		return made, nil
	case v.ConfigMap != nil:
		made.mode = os.FileMode(*v.ConfigMap.DefaultMode)
		cm, err := core.ConfigMaps(k.pod.Namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		made.files = bytesOf(cm.Data)
		return made, absent(err, v.ConfigMap.Optional)
	case v.Secret != nil:
		made.mode = os.FileMode(*v.Secret.DefaultMode)
		secret, err := core.Secrets(k.pod.Namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		made.files = map[string][]byte{}
		maps.Copy(made.files, secret.Data)
		return made, absent(err, v.Secret.Optional)
	case v.Projected != nil:
		var err error
		made.mode = 0o640
		made.files, err = k.account(ctx, v.Projected)
		return made, err
	}
	return content{}, errors.New("a kind of volume that is not supported")
}

func absent(err error, optional *bool) error {
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil
	}
	return err
}

func bytesOf(data map[string]string) map[string][]byte {
	made := map[string][]byte{}
	for name, text := range data {
		made[name] = []byte(text)
	}
	return made
}

// account gives what the ServiceAccount admission plugin has projected. The
// token is made once: it lasts longer than any suite.
func (k *Kubelet) account(ctx context.Context, v *corev1.ProjectedVolumeSource) (map[string][]byte, error) {
	made := map[string][]byte{}
	for _, source := range v.Sources {
		switch {
		case source.ServiceAccountToken != nil:
			token, err := k.token(ctx)
			if err != nil {
				return nil, err
			}
			made[source.ServiceAccountToken.Path] = token
		case source.ConfigMap != nil:
			cm, err := k.client.CoreV1().ConfigMaps(k.pod.Namespace).Get(ctx, source.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			for _, item := range source.ConfigMap.Items {
				made[item.Path] = []byte(cm.Data[item.Key])
			}
		case source.DownwardAPI != nil:
			for _, item := range source.DownwardAPI.Items {
				if item.FieldRef == nil || item.FieldRef.FieldPath != "metadata.namespace" {
					return nil, errors.New("only metadata.namespace is supported")
				}
				made[item.Path] = []byte(k.pod.Namespace)
			}
		}
	}
	return made, nil
}

func (k *Kubelet) token(ctx context.Context) ([]byte, error) {
	const file = "token-of-the-pod"
	if held, err := os.ReadFile(filepath.Join(k.root, file)); err == nil {
		return held, nil
	}
	seconds := int64((24 * time.Hour).Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: k.pod.Name, UID: k.pod.UID},
	}}
	answer, err := k.client.CoreV1().ServiceAccounts(k.pod.Namespace).CreateToken(ctx, k.pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	token := []byte(answer.Status.Token)
	return token, os.WriteFile(filepath.Join(k.root, file), token, 0o600)
}
