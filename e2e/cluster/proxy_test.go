package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetling/fleetling/e2e/cluster"
)

// behind gives a proxy, a client behind it that has the rights of a
// ServiceAccount, and a namespace.
func behind(t *testing.T) (*cluster.Proxy, kubernetes.Interface, string) {
	t.Helper()
	ns := namespace(t, client(t, shared))
	kubeconfig := account(t, ns)
	eventuallyList(t, clientFor(t, configOf(t, kubeconfig)), ns)
	proxy, err := shared.Proxy()
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	kubeconfig, err = proxy.Kubeconfig(kubeconfig)
	require.NoError(t, err)
	config := configOf(t, kubeconfig)
	require.NotEqual(t, shared.Server(), config.Host)
	return proxy, clientFor(t, config), ns
}

func TestProxyHandsOnWhoAsks(t *testing.T) {
	proxy, robot, ns := behind(t)
	_, err := robot.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = robot.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)

	admin, err := shared.Kubeconfig()
	require.NoError(t, err)
	nobody, err := proxy.Kubeconfig(admin)
	require.NoError(t, err)
	config := configOf(t, nobody)
	config.BearerToken = ""
	_, err = clientFor(t, config).CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "without credentials it is anonymous: %v", err)
	assert.ErrorContains(t, err, "system:anonymous")
}

func TestProxyHandsOnApplyAndWatch(t *testing.T) {
	_, robot, ns := behind(t)
	watch, err := robot.CoreV1().ConfigMaps(ns).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=applied"})
	require.NoError(t, err)
	defer watch.Stop()
	for _, value := range []string{"one", "two"} {
		apply(t, robot, ns, "applied", value)
		event := <-watch.ResultChan()
		got, ok := event.Object.(*corev1.ConfigMap)
		require.True(t, ok, "%v", event)
		assert.Equal(t, map[string]string{"key": value}, got.Data)
	}
}

func TestHooksRunAroundTheRequest(t *testing.T) {
	proxy, robot, ns := behind(t)
	admin := client(t, shared)
	exists := func() bool {
		_, err := admin.CoreV1().ConfigMaps(ns).Get(t.Context(), "one", metav1.GetOptions{})
		return err == nil
	}
	var told []string
	proxy.On(cluster.Rule{
		Match:  cluster.Requests(http.MethodPost, "/configmaps"),
		Before: func(r *http.Request) { told = append(told, fmt.Sprint("before ", r.Method, " ", exists())) },
		After:  func(_ *http.Request, status int) { told = append(told, fmt.Sprint("after ", status, " ", exists())) },
	})
	_, err := robot.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("one"), metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Equal(t, []string{"before POST false", "after 201 true"}, told)
}

// The two moments at which a client can die: its request is lost, or done
// without its knowledge.
func TestClientThatDies(t *testing.T) {
	for name, test := range map[string]struct {
		rule func(die func()) cluster.Rule
		done bool
	}{
		"before its request has left": {func(die func()) cluster.Rule {
			return cluster.Rule{Before: func(*http.Request) { die() }, Drop: true}
		}, false},
		"before it hears of the answer": {func(die func()) cluster.Rule {
			return cluster.Rule{After: func(*http.Request, int) { die() }}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			proxy, robot, ns := behind(t)
			ctx, die := context.WithCancel(t.Context())
			rule := test.rule(die)
			rule.Match = cluster.Requests(http.MethodPost, "/configmaps")
			proxy.On(rule)
			_, err := robot.CoreV1().ConfigMaps(ns).Create(ctx, configMap("one"), metav1.CreateOptions{})
			require.Error(t, err)
			_, err = client(t, shared).CoreV1().ConfigMaps(ns).Get(t.Context(), "one", metav1.GetOptions{})
			assert.Equal(t, test.done, err == nil, "%v", err)
		})
	}
}

func TestRefusedRequestIsAnErrorThatClientsKnow(t *testing.T) {
	proxy, robot, ns := behind(t)
	for code, is := range map[int]func(error) bool{
		http.StatusUnauthorized:        apierrors.IsUnauthorized,
		http.StatusForbidden:           apierrors.IsForbidden,
		http.StatusNotFound:            apierrors.IsNotFound,
		http.StatusConflict:            apierrors.IsConflict,
		http.StatusTooManyRequests:     apierrors.IsTooManyRequests,
		http.StatusServiceUnavailable:  apierrors.IsServiceUnavailable,
		http.StatusInternalServerError: apierrors.IsInternalError,
	} {
		rule := proxy.On(cluster.Rule{Refuse: code})
		_, err := robot.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("one"), metav1.CreateOptions{})
		assert.True(t, is(err), "%d: %v", code, err)
		rule.Off()
	}
	_, err := robot.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("one"), metav1.CreateOptions{})
	require.NoError(t, err, "none of them came through")
}

func TestRuleIsForTheFirstOfTheRequestsThatItMatches(t *testing.T) {
	proxy, robot, ns := behind(t)
	all := proxy.On(cluster.Rule{})
	creates := proxy.On(cluster.Rule{Match: cluster.Requests(http.MethodPost, ns+"/configmaps")})
	twice := proxy.On(cluster.Rule{
		Match: func(r *http.Request) bool { return r.Method == http.MethodPost }, Times: 2, Refuse: http.StatusForbidden,
	})
	var got []bool
	for i := range 3 {
		_, err := robot.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		_, err = robot.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap(fmt.Sprintf("n%d", i)), metav1.CreateOptions{})
		got = append(got, apierrors.IsForbidden(err))
	}
	assert.Equal(t, []bool{true, true, false}, got)
	assert.Equal(t, []int{6, 3, 2}, []int{all.Count(), creates.Count(), twice.Count()})
	all.Off()
	_, err := robot.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Equal(t, 6, all.Count(), "switched off it counts no more")
}

func TestDelayEndsWithTheClient(t *testing.T) {
	proxy, robot, ns := behind(t)
	slow := proxy.On(cluster.Rule{Match: cluster.Requests(http.MethodPost, "/configmaps"), Delay: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := robot.CoreV1().ConfigMaps(ns).Create(ctx, configMap("one"), metav1.CreateOptions{})
		failed <- err
	}()
	eventually(t, func(context.Context) error {
		if slow.Count() == 0 {
			return fmt.Errorf("not there yet")
		}
		return nil
	})
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	slow.Off()

	proxy.On(cluster.Rule{Delay: time.Millisecond})
	_, err := robot.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err, "after the delay it goes on")
}

func TestBreakEndsWatchesAndDropKeepsThemAway(t *testing.T) {
	proxy, robot, ns := behind(t)
	watch, err := robot.CoreV1().ConfigMaps(ns).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer watch.Stop()
	away := proxy.On(cluster.Rule{Drop: true})
	proxy.Break()
	for range watch.ResultChan() {
	}
	_, err = robot.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("one"), metav1.CreateOptions{})
	require.Error(t, err)
	assert.Empty(t, apierrors.ReasonForError(err), "no answer at all: %v", err)
	away.Off()
	_, err = robot.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("one"), metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestProxyOfAPausedClusterAnswersNothing(t *testing.T) {
	_, robot, ns := behind(t)
	shared.Pause()
	_, err := robot.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("one"), metav1.CreateOptions{})
	require.NoError(t, shared.Resume(t.Context()))
	require.Error(t, err)
	assert.Empty(t, apierrors.ReasonForError(err), "no 502 that an API server would never say: %v", err)
	assert.False(t, strings.Contains(err.Error(), "Bad Gateway"), err)
	_, err = robot.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("one"), metav1.CreateOptions{})
	require.NoError(t, err, "and it is back with it")
}

func TestKubeconfigThatIsNoneIsAnError(t *testing.T) {
	proxy, _, _ := behind(t)
	_, err := proxy.Kubeconfig([]byte("not: [yaml"))
	require.Error(t, err)
}

func apply(t *testing.T, c kubernetes.Interface, ns, name, value string) {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"key":%q}}`, name, value)
	_, err := c.CoreV1().ConfigMaps(ns).Patch(t.Context(), name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "suite"})
	require.NoError(t, err)
}
