package sharing_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/clusterset"
	"github.com/fleetling/fleetling/e2e/world"
)

// side is one cluster of a scenario.
type side struct {
	*world.Member
	*testing.T
	cluster *clusterset.Cluster
	// namespace is the same in all clusters.
	namespace string
}

// sides gives clusters with a new namespace in each of them.
func sides(t *testing.T, names ...string) []*side {
	t.Helper()
	namespace := strings.ToLower("test-" + rand.Text()[:8])
	var all []*side
	for _, name := range names {
		m, c := w.member(name)
		s := &side{Member: m, T: t, cluster: c, namespace: namespace}
		s.makeNamespace()
		t.Cleanup(func() {
			_ = m.Client.Delete(context.WithoutCancel(t.Context()), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		})
		all = append(all, s)
	}
	return all
}

func (s *side) makeNamespace() {
	s.Helper()
	require.NoError(s.T, s.Client.Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}))
}

func (s *side) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.namespace}
}

// export exports a Service.
func (s *side) export(name string) *v1beta1.ServiceExport {
	s.Helper()
	e := &v1beta1.ServiceExport{ObjectMeta: s.meta(name)}
	require.NoError(s.T, s.Client.Create(s.Context(), e))
	return e
}

func (s *side) unexport(name string) {
	s.Helper()
	require.NoError(s.T, s.Client.Delete(s.Context(), &v1beta1.ServiceExport{ObjectMeta: s.meta(name)}))
}

// backend runs replicas of a server behind a Service that edit may change.
func (s *side) backend(name string, replicas int32, edit func(*corev1.Service)) {
	s.Helper()
	labels := map[string]string{"app": name}
	require.NoError(s.T, s.Client.Create(s.Context(), &appsv1.Deployment{
		ObjectMeta: s.meta(name),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: s.server(labels),
		},
	}))
	s.service(name, labels, edit)
}

// statefulSet runs replicas of a server that have names; its Service is made
// aside.
func (s *side) statefulSet(name string, replicas int32) {
	s.Helper()
	labels := map[string]string{"app": name}
	require.NoError(s.T, s.Client.Create(s.Context(), &appsv1.StatefulSet{
		ObjectMeta: s.meta(name),
		Spec: appsv1.StatefulSetSpec{
			ServiceName: name, Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: s.server(labels),
		},
	}))
}

// server is a Pod that answers with its cluster and its addresses.
func (s *side) server(labels map[string]string) corev1.PodTemplateSpec {
	command := `socat -v -v %s-LISTEN:42,crlf,reuseaddr,fork SYSTEM:'echo "from ` + s.cluster.Name() + ` $MY_POD_IPS"'`
	var containers []corev1.Container
	for _, protocol := range []string{"TCP", "UDP"} {
		containers = append(containers, corev1.Container{
			Name: strings.ToLower(protocol), Image: "alpine/socat:1.7.4.4", Command: []string{"/bin/sh"}, Args: []string{"-c", fmt.Sprintf(command, protocol)},
			Env: []corev1.EnvVar{{Name: "MY_POD_IPS", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIPs"}}}},
		})
	}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: containers}}
}

func (s *side) service(name string, selector map[string]string, edit func(*corev1.Service)) {
	s.Helper()
	service := &corev1.Service{ObjectMeta: s.meta(name), Spec: corev1.ServiceSpec{
		Selector: selector,
		Ports:    []corev1.ServicePort{{Name: "tcp", Port: 42, Protocol: corev1.ProtocolTCP}, {Name: "udp", Port: 42, Protocol: corev1.ProtocolUDP}},
	}}
	if edit != nil {
		edit(service)
	}
	require.NoError(s.T, s.Client.Create(s.Context(), service))
}

func (s *side) scale(name string, replicas int32) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	require.NoError(s.T, s.Client.Patch(s.Context(), &appsv1.Deployment{ObjectMeta: s.meta(name)}, client.RawPatch("application/merge-patch+json", patch)))
}

// request makes the Pod that requests come from.
func (s *side) request() {
	s.Helper()
	pod := &corev1.Pod{ObjectMeta: s.meta("request"), Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "request", Image: "nicolaka/netshoot:v0.15", Args: []string{"/bin/sh", "-ec", "while :; do echo '.'; sleep 5 ; done"},
	}}}}
	require.NoError(s.T, s.Client.Create(s.Context(), pod))
	s.eventually(func(ctx context.Context) error {
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("the Pod is %s", pod.Status.Phase)
		}
		return err
	})
}

// sh runs a script in the Pod that requests come from.
func (s *side) sh(ctx context.Context, script string) (string, error) {
	result, err := s.cluster.Exec(ctx, s.namespace, "request", "sh", "-c", script)
	return result.Stdout + result.Stderr, err
}

// prints waits until a script prints a text.
func (s *side) prints(want, script string) {
	s.Helper()
	s.eventually(func(ctx context.Context) error {
		out, err := s.sh(ctx, script)
		if err == nil && !strings.Contains(out, want) {
			err = fmt.Errorf("%s: no %q in %q", script, want, out)
		}
		return err
	})
}

func (s *side) eventually(check func(context.Context) error) {
	s.Helper()
	err := s.Eventually(s.Context(), check)
	if err != nil {
		require.NoError(s.T, err, s.peers())
	}
}

// peers says in words what the member knows of the others.
func (s *side) peers() string {
	var list v1alpha1.PeerList
	if err := s.Client.List(context.WithoutCancel(s.Context()), &list); err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, p := range list.Items {
		fmt.Fprintf(&b, "%s: %+v\n", p.Name, p.Status)
	}
	self, err := s.Self(context.WithoutCancel(s.Context()))
	fmt.Fprintf(&b, "%+v %v", self.Status.Conditions, err)
	return b.String()
}

// imported waits for the import of a Service with exactly these exporters.
func (s *side) imported(name string, exporters ...string) *v1beta1.ServiceImport {
	s.Helper()
	found := &v1beta1.ServiceImport{}
	s.eventually(func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, found); err != nil {
			return err
		}
		var clusters []string
		for _, c := range found.Status.Clusters {
			clusters = append(clusters, c.Cluster)
		}
		if strings.Join(clusters, ",") != strings.Join(exporters, ",") {
			return fmt.Errorf("exported by %v, not by %v", clusters, exporters)
		}
		return nil
	})
	return found
}

// notImported waits until there is no import of a Service.
func (s *side) notImported(name string) {
	s.Helper()
	s.eventually(func(ctx context.Context) error {
		err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, &v1beta1.ServiceImport{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the import is there: %w", err)
	})
}

// endpoints are the ready and the other addresses that are imported of a cluster.
func (s *side) endpoints(ctx context.Context, name, from string) (ready, other []string, _ error) {
	var list discoveryv1.EndpointSliceList
	err := s.Client.List(ctx, &list, client.InNamespace(s.namespace), client.MatchingLabels{
		"multicluster.kubernetes.io/service-name": name, "multicluster.kubernetes.io/source-cluster": from,
	})
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready = append(ready, e.Addresses...)
			} else {
				other = append(other, e.Addresses...)
			}
		}
	}
	return ready, other, err
}

// has waits until so many ready endpoints are imported of a cluster.
func (s *side) has(name, from string, ready int) {
	s.Helper()
	s.eventually(func(ctx context.Context) error {
		found, other, err := s.endpoints(ctx, name, from)
		if err == nil && len(found) != ready {
			err = fmt.Errorf("%d ready endpoints of %s, not %d; %d others", len(found), from, ready, len(other))
		}
		return err
	})
}

// name is a Service's in the ClusterSet.
func (s *side) name(service string) string {
	return service + "." + s.namespace + ".svc.clusterset.local"
}

// connect asks the server at a name.
func connect(host string) string {
	return fmt.Sprintf("echo hi | nc -v -w 2 -4 %s 42 2>&1", host)
}
