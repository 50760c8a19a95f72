package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetling/fleetling/e2e/cluster"
)

func TestAuditShowsWhatAUserDid(t *testing.T) {
	admin := client(t, shared)
	ns := namespace(t, admin)
	kubeconfig := account(t, ns)
	config := configOf(t, kubeconfig)
	config.UserAgent = "suite/1"
	robot := clientFor(t, config)
	user := cluster.ServiceAccountUser(ns, "robot")
	nothing, err := shared.Audit(t.Context(), user)
	require.NoError(t, err)
	assert.Empty(t, nothing)

	eventuallyList(t, robot, ns)
	before, err := shared.Audit(t.Context(), user)
	require.NoError(t, err)
	require.NotEmpty(t, before)

	_, err = robot.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("one"), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = robot.CoreV1().ConfigMaps(ns).Patch(t.Context(), "one", types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"b"}}`), metav1.PatchOptions{FieldManager: "suite"})
	require.NoError(t, err)
	_, err = admin.CoreV1().ConfigMaps(ns).Get(t.Context(), "one", metav1.GetOptions{})
	require.NoError(t, err, "another user's")
	_, err = robot.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	after, err := shared.Audit(t.Context(), user)
	require.NoError(t, err)
	var got []line
	for _, e := range after[len(before):] {
		assert.Equal(t, "ResponseComplete", e.Stage)
		assert.Equal(t, "suite/1", e.UserAgent)
		assert.Equal(t, user, e.User.Username)
		assert.False(t, e.RequestReceived.IsZero())
		got = append(got, line{e.Verb, e.RequestURI, e.ResponseStatus.Code, *e.ObjectRef})
	}
	base := "/api/v1/namespaces/" + ns
	about := cluster.ObjectRef{APIVersion: "v1", Resource: "configmaps", Namespace: ns, Name: "one"}
	want := []line{
		{"create", base + "/configmaps", http.StatusCreated, about},
		{"patch", base + "/configmaps/one?fieldManager=suite", http.StatusOK, about},
		{"list", base + "/secrets", http.StatusForbidden, cluster.ObjectRef{APIVersion: "v1", Resource: "secrets", Namespace: ns}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

type line struct {
	Verb, URI string
	Code      int
	About     cluster.ObjectRef
}

func TestAuditHoldsAWatchWhenItHasEnded(t *testing.T) {
	ns := namespace(t, client(t, shared))
	robot := clientFor(t, configOf(t, account(t, ns)))
	eventuallyList(t, robot, ns)
	watch, err := robot.CoreV1().ConfigMaps(ns).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Equal(t, 0, watches(t, ns))
	watch.Stop()
	eventuallyWatches(t, ns, 1)
}

func TestAuditOfAllUsersHoldsTheControllers(t *testing.T) {
	events, err := shared.Audit(t.Context(), "")
	require.NoError(t, err)
	users := map[string]bool{}
	for _, e := range events {
		users[e.User.Username] = true
	}
	assert.True(t, users["admin"])
	assert.True(t, users["system:serviceaccount:kube-system:namespace-controller"], "%v", users)
}

func watches(t *testing.T, ns string) int {
	t.Helper()
	events, err := shared.Audit(t.Context(), cluster.ServiceAccountUser(ns, "robot"))
	require.NoError(t, err)
	count := 0
	for _, e := range events {
		if e.Verb == "watch" {
			count++
		}
	}
	return count
}

func eventuallyWatches(t *testing.T, ns string, want int) {
	t.Helper()
	eventually(t, func(context.Context) error {
		if got := watches(t, ns); got != want {
			return fmt.Errorf("%d watches, want %d", got, want)
		}
		return nil
	})
}

// eventuallyList waits until RBAC, which is read from a cache, knows the robot.
func eventuallyList(t *testing.T, robot kubernetes.Interface, ns string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		_, err := robot.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
		return err
	})
}
