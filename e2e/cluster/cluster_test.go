package cluster_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/cluster"
)

// assets may hold API servers of another version.
const assets = "KUBEBUILDER_ASSETS"

func TestClusterIsWhole(t *testing.T) {
	c := client(t, shared)
	version, err := c.Discovery().ServerVersion()
	require.NoError(t, err)
	if os.Getenv(assets) == "" {
		assert.Equal(t, "v1.37.2", version.GitVersion)
	}

	service, err := c.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	require.NoError(t, err)
	assert.True(t, netip.MustParsePrefix("10.0.0.0/16").Contains(netip.MustParseAddr(service.Spec.ClusterIP)))
	slice, err := c.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, []string{"192.0.2.1"}, slice.Endpoints[0].Addresses)
}

func TestClustersShareNothingButEtcd(t *testing.T) {
	second, err := host.Start(t.Context(), cluster.Options{Name: "second"})
	require.NoError(t, err)
	defer second.Stop()
	ns := namespace(t, client(t, shared))
	_, err = client(t, second).CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)

	one, err := client(t, shared).CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	require.NoError(t, err)
	two, err := client(t, second).CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotEqual(t, one.Spec.ClusterIP, two.Spec.ClusterIP)

	stranger := second.Config()
	stranger.BearerToken = shared.Config().BearerToken
	_, err = clientFor(t, stranger).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsUnauthorized(err), "%v", err)

	memory, err := second.Memory()
	require.NoError(t, err)
	assert.Len(t, memory, 3)
	for name, m := range memory {
		assert.Greater(t, m.Resident, int64(10<<20), name)
		t.Logf("%s: %d MiB", name, m.Resident>>20)
	}
}

func TestKubeconfigFileIsTheAdministrators(t *testing.T) {
	content, err := os.ReadFile(shared.KubeconfigFile())
	require.NoError(t, err)
	given, err := shared.Kubeconfig()
	require.NoError(t, err)
	assert.Equal(t, string(given), string(content))
	_, err = clientFor(t, configOf(t, content)).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
}

func TestServiceAccountHasTheRightsThatRBACGives(t *testing.T) {
	ns := namespace(t, client(t, shared))
	robot := clientFor(t, configOf(t, account(t, ns)))

	self, err := robot.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Equal(t, cluster.ServiceAccountUser(ns, "robot"), self.Status.UserInfo.Username)

	eventuallyList(t, robot, ns)
	_, err = robot.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = robot.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestServiceAccountThatIsNotThereHasNoKubeconfig(t *testing.T) {
	_, err := shared.ServiceAccountKubeconfig(t.Context(), "default", "nobody")
	assert.True(t, apierrors.IsNotFound(errors.Unwrap(err)), "%v", err)
	assert.ErrorContains(t, err, "default/nobody")
}

func TestNamespaceIsDeletedWithItsContent(t *testing.T) {
	c := client(t, shared)
	ns := namespace(t, c)
	_, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("inside"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, c.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}))
	eventually(t, func(ctx context.Context) error {
		return gone(c.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{}))
	})
	require.NoError(t, gone(c.CoreV1().ConfigMaps(ns).Get(t.Context(), "inside", metav1.GetOptions{})))
}

func TestGarbageIsCollected(t *testing.T) {
	c := client(t, shared)
	ns := namespace(t, c)
	owner, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("owner"), metav1.CreateOptions{})
	require.NoError(t, err)
	owned := configMap("owned")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	_, err = c.CoreV1().ConfigMaps(ns).Create(t.Context(), owned, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, c.CoreV1().ConfigMaps(ns).Delete(t.Context(), owner.Name, metav1.DeleteOptions{}))
	eventually(t, func(ctx context.Context) error {
		return gone(c.CoreV1().ConfigMaps(ns).Get(ctx, "owned", metav1.GetOptions{}))
	})
}

func TestPausedClusterComesBackAsItWas(t *testing.T) {
	c := client(t, shared)
	ns := namespace(t, c)
	robot := clientFor(t, configOf(t, account(t, ns)))
	made, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("kept"), metav1.CreateOptions{})
	require.NoError(t, err)
	server := shared.Server()

	shared.Pause()
	_, err = c.CoreV1().ConfigMaps(ns).Get(t.Context(), "kept", metav1.GetOptions{})
	require.Error(t, err)
	require.Zero(t, apierrors.ReasonForError(err), "no answer, not a bad one: %v", err)
	_, err = shared.Audit(t.Context(), "")
	require.Error(t, err, "a log that can't be known to be whole is an error")

	require.NoError(t, shared.Resume(t.Context()))
	assert.Equal(t, server, shared.Server())
	kept, err := c.CoreV1().ConfigMaps(ns).Get(t.Context(), "kept", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, made.UID, kept.UID)
	_, err = robot.CoreV1().ConfigMaps(ns).Get(t.Context(), "kept", metav1.GetOptions{})
	require.NoError(t, err, "tokens given out before are good")

	later := namespace(t, c)
	eventually(t, func(ctx context.Context) error {
		_, err := c.CoreV1().ServiceAccounts(later).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func TestStartThatFailsShowsWhatTheComponentSaid(t *testing.T) {
	root, err := build.Root()
	require.NoError(t, err)
	real, err := build.FindControlPlane(root, os.Getenv(assets))
	require.NoError(t, err)
	bad := build.Program{"/bin/sh", "-c", "echo this is why; exit 3"}
	for name, programs := range map[string]build.ControlPlane{
		"etcd":                    {Etcd: bad},
		"kube-apiserver":          {Etcd: real.Etcd, APIServer: bad},
		"kube-controller-manager": {Etcd: real.Etcd, APIServer: real.APIServer, ControllerManager: bad},
	} {
		t.Run(name, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			host, err := cluster.NewHost(t.Context(), programs)
			if err == nil {
				_, err = host.Start(t.Context(), cluster.Options{Name: "broken"})
				host.Stop()
			}
			require.ErrorContains(t, err, name+": ended: exit status 3")
			assert.ErrorContains(t, err, "this is why")
			assert.ErrorContains(t, err, name+".log")
			left, err := os.ReadDir(temporary)
			require.NoError(t, err)
			assert.Empty(t, left, "the folder is gone")
		})
	}
}

func TestStartEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := host.Start(ctx, cluster.Options{Name: "late"})
	require.ErrorIs(t, err, context.Canceled)
	assert.True(t, strings.HasPrefix(err.Error(), "cluster late: kube-apiserver: "), err.Error())
}

// gone is nil where a get says that there is no such object.
func gone[T any](_ T, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	default:
		return errors.New("still there")
	}
}
