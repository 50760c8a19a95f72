package clusterset_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetling/fleetling/e2e/clusterset"
	"github.com/fleetling/fleetling/e2e/harness"
)

// set is started once: each test has a namespace of its own in its clusters, and
// heals what it has cut. They don't run at the same time.
var set *clusterset.Set

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	log.SetLogger(logr.Discard())
	ctx := context.Background()
	release, err := harness.Places(ctx, 3)
	if err != nil {
		return fail(err)
	}
	defer release()
	host, err := harness.NewHost(ctx)
	if err != nil {
		return fail(err)
	}
	defer host.Stop()
	set, err = clusterset.Start(ctx, host, clusterset.Options{
		Names: []string{"eu", "us", "ap"}, Progress: os.Stderr,
	})
	if err != nil {
		return fail(err)
	}
	defer func() {
		if err := set.Stop(); err != nil {
			code = fail(err)
		}
	}()
	return m.Run()
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// member is a cluster and a namespace in it.
type member struct {
	*clusterset.Cluster
	*testing.T
	client    kubernetes.Interface
	namespace string
}

// members gives the clusters, with a namespace of the same name in each.
func members(t *testing.T) (eu, us, ap *member) {
	t.Helper()
	// The name is a label of DNS.
	namespace := strings.ToLower(t.Name()[len("Test"):min(len(t.Name()), 40)] + "-" + rand.Text()[:6])
	all := make([]*member, 3)
	for i, name := range []string{"eu", "us", "ap"} {
		c := set.Cluster(name)
		client, err := kubernetes.NewForConfig(c.Config())
		require.NoError(t, err)
		_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		require.NoError(t, err)
		all[i] = &member{c, t, client, namespace}
	}
	return all[0], all[1], all[2]
}

// listener is what the MCS conformance suite runs behind its Services, in short.
func listener(protocol corev1.Protocol) corev1.Container {
	return corev1.Container{
		Name: "hello-" + strings.ToLower(string(protocol)), Image: "alpine/socat:1.7.4.4", Command: []string{"/bin/sh"},
		Args: []string{"-c", `socat -v -v ` + string(protocol) + `-LISTEN:42,crlf,reuseaddr,fork SYSTEM:'echo "pod ip $MY_POD_IPS"'`},
		Env: []corev1.EnvVar{{
			Name: "MY_POD_IPS", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIPs"}},
		}},
	}
}

func hello() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "hello"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{listener(corev1.ProtocolTCP), listener(corev1.ProtocolUDP)}},
	}
}

func ports() []corev1.ServicePort {
	return []corev1.ServicePort{
		{Name: "tcp", Port: 42, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(42)},
		{Name: "udp", Port: 42, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(42)},
	}
}

// pod makes a Pod and waits until it is ready.
func (m *member) pod(name string, template corev1.PodTemplateSpec) *corev1.Pod {
	m.Helper()
	p := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
	p.Name = name
	_, err := m.client.CoreV1().Pods(m.namespace).Create(m.Context(), p, metav1.CreateOptions{})
	require.NoError(m, err)
	m.eventually(func(ctx context.Context) error {
		p, err = m.client.CoreV1().Pods(m.namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && !ready(p) {
			err = fmt.Errorf("not ready: %+v", p.Status.ContainerStatuses)
		}
		return err
	})
	return p
}

// request makes the Pod that requests come from.
func (m *member) request() {
	m.Helper()
	m.pod("request", corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "request", Image: "nicolaka/netshoot:v0.15", Args: []string{"/bin/sh", "-ec", "while :; do echo '.'; sleep 5 ; done"},
	}}}})
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// sh runs a script in the Pod that requests come from, and gives what it printed.
func (m *member) sh(ctx context.Context, script string) (string, error) {
	result, err := m.Exec(ctx, m.namespace, "request", "sh", "-c", script)
	return result.Stdout + result.Stderr, err
}

// prints waits until a script prints a text.
func (m *member) prints(want, script string) {
	m.Helper()
	m.eventually(func(ctx context.Context) error {
		out, err := m.sh(ctx, script)
		if err == nil && !strings.Contains(out, want) {
			err = fmt.Errorf("%s: no %q in %q", script, want, out)
		}
		return err
	})
}

func (m *member) eventually(check func(context.Context) error) {
	m.Helper()
	require.NoError(m, harness.Eventually(m.Context(), check))
}

// gone waits until a Pod is no more.
func (m *member) gone(name string) {
	m.Helper()
	m.eventually(func(ctx context.Context) error {
		_, err := m.client.CoreV1().Pods(m.namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s is there: %w", name, err)
	})
}

// connect is how the conformance suite asks a server.
func connect(flags, host string) string {
	return fmt.Sprintf("echo hi | nc %s -v -w 2 -4 %s 42 2>&1", flags, host)
}
