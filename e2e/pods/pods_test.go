package pods

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/network"
	"github.com/fleetling/fleetling/e2e/node"
)

var _ node.Runtime = (*Runtime)(nil)

const sleeps = "while :; do sleep 5; done"

func TestPodRunsWithItsAddressAndEnvironment(t *testing.T) {
	r, address := newRuntime(t)
	server := object("server", `socat TCP-LISTEN:42,reuseaddr,fork SYSTEM:'echo "pod ip $MY_POD_IPS of $HOSTNAME"'`)
	server.Spec.Containers[0].Env = []corev1.EnvVar{{
		Name: "MY_POD_IPS", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIPs"}},
	}}
	require.NoError(t, r.Run(t.Context(), server, address))
	client := object("client", sleeps)
	require.NoError(t, r.Run(t.Context(), client, address.Next()))
	require.NoError(t, r.Run(t.Context(), client, address.Next()), "again it changes nothing")

	eventually(t, func() error {
		result, err := r.Exec(t.Context(), "shop", "client", "sh", "-c", fmt.Sprintf("nc -w 2 %s 42 </dev/null", address))
		if want := fmt.Sprintf("pod ip %s of server\n", address); err == nil && result.Stdout != want {
			err = fmt.Errorf("%+v, not %q", result, want)
		}
		return err
	})
	result, err := r.Exec(t.Context(), "shop", "client", "cat", "/etc/resolv.conf")
	require.NoError(t, err)
	assert.Contains(t, result.Stdout, "nameserver "+r.site.Address().String()+"\nsearch shop.svc.cluster.local ")
}

func TestExecGivesHowTheCommandEnded(t *testing.T) {
	r, address := newRuntime(t)
	require.NoError(t, r.Run(t.Context(), object("one", sleeps), address))
	result, err := r.Exec(t.Context(), "shop", "one", "sh", "-c", "echo out; echo err >&2; exit 3")
	require.NoError(t, err)
	assert.Equal(t, Result{Stdout: "out\n", Stderr: "err\n", Code: 3}, result)

	_, err = r.Exec(t.Context(), "shop", "one", "no-such-program")
	require.ErrorContains(t, err, "exec in shop/one: ")
	_, err = r.Exec(t.Context(), "shop", "two", "true")
	require.ErrorContains(t, err, "exec in shop/two: the Pod doesn't run here")

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = r.Exec(ctx, "shop", "one", "sh", "-c", "sleep 1000; true")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestContainerThatEndsIsSaidAndStartedAgain(t *testing.T) {
	r, address := newRuntime(t)
	file := t.TempDir() + "/runs"
	p := object("one", "echo run >> "+file+"; echo last words; exit 3")
	require.NoError(t, r.Run(t.Context(), p, address))
	assert.Equal(t, cache.NewObjectName("shop", "one"), <-r.Changed())
	err := r.Run(t.Context(), p, address)
	require.ErrorContains(t, err, "container main: ended: exit status 3")
	require.ErrorContains(t, err, "last words")
	eventually(t, func() error {
		select {
		case <-r.Changed():
		default:
		}
		_ = r.Run(t.Context(), p, address)
		content, err := os.ReadFile(file)
		if runs := strings.Count(string(content), "run"); err == nil && runs < 2 {
			err = fmt.Errorf("it ran %d times", runs)
		}
		return err
	})
}

func TestEndTakesAllProcessesAndTheAddress(t *testing.T) {
	for name, script := range map[string]string{
		"that listen":        "sleep 1000 & " + sleeps,
		"that do not listen": "trap '' TERM; while :; do sleep 0.1; done",
	} {
		t.Run(name, func(t *testing.T) {
			r, address := newRuntime(t)
			p := object("one", script)
			require.NoError(t, r.Run(t.Context(), p, address))
			pid := r.pods[cache.MetaObjectToName(p)].containers["main"].Pid()
			key := cache.MetaObjectToName(p)
			require.False(t, r.End(key, time.Second), "it doesn't wait")
			require.ErrorContains(t, r.Run(t.Context(), p, address), "is being deleted")
			eventually(t, func() error {
				select {
				case <-r.Changed():
				default:
				}
				if !r.End(key, time.Second) {
					return fmt.Errorf("something is left")
				}
				return nil
			})
			assert.NoDirExists(t, fmt.Sprintf("/proc/%d", pid))
			require.NoError(t, r.Run(t.Context(), object("two", sleeps), address), "its address is free")
		})
	}
}

func TestEndOfWhatIsNotKnownIsDone(t *testing.T) {
	r, _ := newRuntime(t)
	assert.True(t, r.End(cache.NewObjectName("shop", "one"), time.Hour))
}

func TestPodOfTheSameNameWaitsForTheOneBefore(t *testing.T) {
	r, address := newRuntime(t)
	require.NoError(t, r.Run(t.Context(), object("one", sleeps), address))
	second := object("one", sleeps)
	second.UID = "second"
	require.ErrorContains(t, r.Run(t.Context(), second, address.Next()), "the one before, first, still runs")
	eventually(t, func() error {
		select {
		case <-r.Changed():
		default:
		}
		return r.Run(t.Context(), second, address.Next())
	})
}

func TestOnlyKnownImagesOfPodsThatStayAreRun(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   int
	}{
		"as it is":                   {func(*corev1.Pod) {}, 1},
		"without a tag":              {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "alpine/socat" }, 1},
		"by digest":                  {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "alpine/socat@sha256:00" }, 1},
		"with its registry":          {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "docker.io/alpine/socat:1" }, 1},
		"another registry's":         {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "example.com:5000/alpine/socat" }, 0},
		"another image":              {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nginx" }, 0},
		"of the host's network":      {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, 0},
		"of a Job":                   {func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }, 0},
		"beside one that is not run": {func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Image: "nginx"}) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := object("one", sleeps)
			test.change(p)
			assert.Len(t, runnable(p), test.want)
		})
	}
}

func TestNothingIsMadeForPodsThatAreNotRun(t *testing.T) {
	r, address := newRuntime(t)
	p := object("one", sleeps)
	p.Spec.Containers[0].Image = "nginx"
	require.NoError(t, r.Run(t.Context(), p, address))
	assert.Empty(t, r.pods)
}

func TestContainersThatCanNotBeRunAreAnError(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Container)
		want   string
	}{
		"no command":            {func(c *corev1.Container) { c.Command, c.Args = nil, nil }, "no command"},
		"no such program":       {func(c *corev1.Container) { c.Command = []string{"no-such-program"} }, "not found"},
		"envFrom":               {func(c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{{}} }, "envFrom is not supported"},
		"a field of other kind": {variable(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.hostIP"}}), "variable A: fieldRef status.hostIP is not supported"},
		"a Secret's value":      {variable(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{}}), "variable A: only a fieldRef is supported"},
	} {
		t.Run(name, func(t *testing.T) {
			r, address := newRuntime(t)
			p := object("one", sleeps)
			test.change(&p.Spec.Containers[0])
			err := r.Run(t.Context(), p, address)
			require.ErrorContains(t, err, "container main: ")
			require.ErrorContains(t, err, test.want)
		})
	}
}

func variable(source corev1.EnvVarSource) func(*corev1.Container) {
	return func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &source}} }
}

func TestEnvironmentIsThePods(t *testing.T) {
	p := newPod(object("one", sleeps), netip.MustParseAddr("172.16.0.9"), nil)
	c := p.object.Spec.Containers[0]
	for _, path := range []string{"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "status.podIP"} {
		c.Env = append(c.Env, corev1.EnvVar{
			Name: path, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}},
		})
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: "A", Value: "b"})
	got, err := p.environment(c)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/root", "HOSTNAME=one", "metadata.name=one", "metadata.namespace=shop", "metadata.uid=first",
		"spec.nodeName=a-node", "status.podIP=172.16.0.9", "A=b",
	}, got)
	p.object.Spec.Hostname = "other"
	assert.Equal(t, "other", p.hostname())
}

// newRuntime gives a runtime at a site of its own, and the first address of a Pod.
func newRuntime(t *testing.T) (*Runtime, netip.Addr) {
	t.Helper()
	n, err := network.New(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, n.Remove()) })
	site, err := n.Add(t.Context(), "a")
	require.NoError(t, err)
	r := New(site, t.TempDir())
	t.Cleanup(r.Stop)
	return r, site.Address().Next()
}

func object(name, script string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("first")},
		Spec: corev1.PodSpec{
			NodeName: "a-node", RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{Name: "main", Image: "alpine/socat:1.7.4.4", Command: []string{"/bin/sh"}, Args: []string{"-c", script}}},
		},
	}
}

func eventually(t *testing.T, check func() error) {
	t.Helper()
	require.NoError(t, harness.Eventually(t.Context(), func(context.Context) error { return check() }))
}
