package cluster_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/harness"
)

// host and shared are started once: each test has a namespace of its own.
var (
	host   *cluster.Host
	shared *cluster.Cluster
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx := context.Background()
	release, err := harness.Places(ctx, 2)
	if err != nil {
		return fail(err)
	}
	defer release()
	host, err = harness.NewHost(ctx)
	if err != nil {
		return fail(err)
	}
	defer host.Stop()
	shared, err = host.Start(ctx, cluster.Options{Name: "shared"})
	if err != nil {
		return fail(err)
	}
	return m.Run()
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// client is the administrator's.
func client(t *testing.T, c *cluster.Cluster) kubernetes.Interface {
	t.Helper()
	return clientFor(t, c.Config())
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// namespace makes one for the test.
func namespace(t *testing.T, c kubernetes.Interface) string {
	t.Helper()
	made, err := c.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return made.Name
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// account makes a ServiceAccount that may do all with ConfigMaps of its
// namespace, and gives its kubeconfig.
func account(t *testing.T, namespace string) []byte {
	t.Helper()
	admin := client(t, shared)
	const name = "robot"
	_, err := admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	kubeconfig, err := shared.ServiceAccountKubeconfig(t.Context(), namespace, name)
	require.NoError(t, err)
	return kubeconfig
}

func configOf(t *testing.T, kubeconfig []byte) *rest.Config {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	require.NoError(t, err)
	return config
}

// eventually waits for check to give no error.
func eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	require.NoError(t, harness.Eventually(t.Context(), check))
}
