package clusterset_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/e2e/harness"
)

func TestServiceOfAnotherClusterAnswersUntilTheLinkIsCut(t *testing.T) {
	eu, us, ap := members(t)
	server := us.pod("hello", hello())
	eu.request()
	ap.request()
	name := "hello." + eu.namespace + ".svc.clusterset.local"
	for _, m := range []*member{eu, ap} {
		address := m.importHello(server.Status.PodIP)
		m.prints("Address: "+address+"\n", "nslookup -type=A "+name+".")
		m.prints("42 "+name, "nslookup -type=SRV "+name+".")
		m.prints("pod ip "+server.Status.PodIP, connect("", name))
		m.prints("pod ip "+server.Status.PodIP, connect("-u", name))
	}

	require.NoError(t, eu.Site.To(us.Site).Cut(t.Context()))
	t.Cleanup(func() { assert.NoError(t, eu.Site.To(us.Site).Heal(context.Background())) })
	out, err := eu.sh(t.Context(), connect("", name))
	require.NoError(t, err)
	assert.NotContains(t, out, "pod ip")
	assert.Contains(t, out, "timed out", "it is cut in silence")
	eu.prints("Address: ", "nslookup -type=A "+name+".")
	ap.prints("pod ip "+server.Status.PodIP, connect("", name))

	require.NoError(t, eu.Site.To(us.Site).Heal(t.Context()))
	eu.prints("pod ip "+server.Status.PodIP, connect("", name))
}

func TestLocalServicesAreThoseOfTheCluster(t *testing.T) {
	eu, us, _ := members(t)
	eu.request()
	for _, m := range []*member{eu, us} {
		template := hello()
		replicas := int32(2)
		labels := &metav1.LabelSelector{MatchLabels: template.Labels}
		_, err := m.client.AppsV1().StatefulSets(m.namespace).Create(t.Context(), &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: "hello"},
			Spec:       appsv1.StatefulSetSpec{ServiceName: "headless", Replicas: &replicas, Selector: labels, Template: template},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		for name, ip := range map[string]string{"hello": "", "headless": corev1.ClusterIPNone} {
			_, err = m.client.CoreV1().Services(m.namespace).Create(t.Context(), &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       corev1.ServiceSpec{Selector: template.Labels, Ports: ports(), ClusterIP: ip},
			}, metav1.CreateOptions{})
			require.NoError(t, err)
		}
	}
	local := eu.endpoints("hello", 2)
	far := us.endpoints("hello", 2)
	domain := eu.namespace + ".svc.cluster.local"
	for name, address := range eu.hostnames("headless") {
		eu.prints("Address: "+address+"\n", "nslookup -type=A "+name+".headless."+domain+".")
	}
	seen := map[string]bool{}
	eu.eventually(func(ctx context.Context) error {
		out, err := eu.sh(ctx, connect("", "hello")+"; "+connect("-u", "hello."+domain))
		if err != nil {
			return err
		}
		for _, address := range far {
			if strings.Contains(out, "pod ip "+address+"\r\n") {
				return fmt.Errorf("another cluster's Pod answers: %s", out)
			}
		}
		for _, address := range local {
			seen[address] = seen[address] || strings.Contains(out, "pod ip "+address+"\r\n")
		}
		if !seen[local[0]] || !seen[local[1]] {
			return fmt.Errorf("not both have answered: %v, %s", seen, out)
		}
		return nil
	})
	out, err := eu.sh(t.Context(), "nslookup hello."+eu.namespace+".svc.clusterset.local.")
	require.NoError(t, err)
	assert.Contains(t, out, "NXDOMAIN", "nothing is exported")
}

func TestPodThatEndsIsNoEndpointAnyMore(t *testing.T) {
	eu, _, _ := members(t)
	eu.request()
	eu.pod("hello", hello())
	_, err := eu.client.CoreV1().Services(eu.namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: corev1.ServiceSpec{Selector: hello().Labels, Ports: ports()},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	eu.endpoints("hello", 1)
	eu.prints("pod ip", connect("", "hello"))
	require.NoError(t, eu.client.CoreV1().Pods(eu.namespace).Delete(t.Context(), "hello", metav1.DeleteOptions{}))
	eu.gone("hello")
	eu.endpoints("hello", 0)
	_, err = eu.Exec(t.Context(), eu.namespace, "hello", "true")
	require.ErrorContains(t, err, "the Pod doesn't run here")
}

func TestContainerThatCrashesMakesThePodUnreadyForAWhile(t *testing.T) {
	eu, _, _ := members(t)
	crashing := listener(corev1.ProtocolTCP)
	gate := t.TempDir() + "/open"
	crashing.Args = []string{"-c", "test -e " + gate + " && exec sleep 1000; echo not yet; exit 7"}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "crash"}, Spec: corev1.PodSpec{Containers: []corev1.Container{crashing}}}
	_, err := eu.client.CoreV1().Pods(eu.namespace).Create(t.Context(), p, metav1.CreateOptions{})
	require.NoError(t, err)
	eu.eventually(func(ctx context.Context) error {
		p, err := eu.client.CoreV1().Pods(eu.namespace).Get(ctx, "crash", metav1.GetOptions{})
		switch {
		case err != nil:
			return err
		case ready(p) || len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].State.Waiting == nil:
			return fmt.Errorf("it doesn't wait: %+v", p.Status)
		}
		assert.Contains(t, p.Status.ContainerStatuses[0].State.Waiting.Message, "exit status 7")
		return nil
	})
	require.NoError(t, exec.CommandContext(t.Context(), "touch", gate).Run())
	eu.eventually(func(ctx context.Context) error {
		result, err := eu.Exec(ctx, eu.namespace, "crash", "true")
		if err != nil {
			return err
		}
		p, err := eu.client.CoreV1().Pods(eu.namespace).Get(ctx, "crash", metav1.GetOptions{})
		if err == nil && (!ready(p) || result.Code != 0) {
			err = errors.New("not ready")
		}
		return err
	})
}

func TestSiteThatIsCutOffHasItsAPIServerAndNoOthers(t *testing.T) {
	eu, us, _ := members(t)
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "registry") }))
	t.Cleanup(registry.Close)
	published, err := set.Publish(t.Context(), registry.Listener.Addr().String())
	require.NoError(t, err)
	assert.Equal(t, set.Hub.Address().String(), strings.Split(published, ":")[0])
	for _, m := range []*member{eu, us} {
		require.NoError(t, m.get("http://"+published))
	}

	require.NoError(t, set.Network.Isolate(t.Context(), eu.Site))
	t.Cleanup(func() { assert.NoError(t, set.Network.Rejoin(context.Background(), eu.Site)) })
	require.ErrorIs(t, eu.get("http://"+published), context.DeadlineExceeded)
	require.NoError(t, us.get("http://"+published))
	server, err := url.Parse(eu.Server())
	require.NoError(t, err)
	conn, err := eu.Site.Dial(t.Context(), "tcp", server.Host)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	other, err := url.Parse(us.Server())
	require.NoError(t, err)
	_, err = eu.Site.Dial(t.Context(), "tcp", other.Host)
	require.ErrorContains(t, err, "refused", "another cluster's API server is not there")

	require.NoError(t, set.Network.Rejoin(t.Context(), eu.Site))
	require.NoError(t, harness.Eventually(t.Context(), func(context.Context) error { return eu.get("http://" + published) }))
}

// get asks a server from the cluster's site.
func (m *member) get(address string) error {
	ctx, cancel := context.WithTimeout(m.Context(), 5*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return m.Site.Dial(ctx, network, address)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	return response.Body.Close()
}

// importHello writes by hand what a multi-cluster controller would: a Service without a selector, an
// EndpointSlice with the other cluster's endpoint, a ServiceImport with the
// Service's address, which it gives.
func (m *member) importHello(endpoint string) string {
	m.Helper()
	derived, err := m.client.CoreV1().Services(m.namespace).Create(m.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "derived-hello"}, Spec: corev1.ServiceSpec{Ports: ports(), SessionAffinity: corev1.ServiceAffinityClientIP},
	}, metav1.CreateOptions{})
	require.NoError(m, err)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "us-hello", Labels: map[string]string{
			discoveryv1.LabelServiceName: derived.Name, discoveryv1.LabelManagedBy: "test",
			"multicluster.kubernetes.io/service-name": "hello", "multicluster.kubernetes.io/source-cluster": "us",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{endpoint}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	}
	for _, port := range ports() {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &port.Name, Port: &port.Port, Protocol: &port.Protocol})
	}
	_, err = m.client.DiscoveryV1().EndpointSlices(m.namespace).Create(m.Context(), slice, metav1.CreateOptions{})
	require.NoError(m, err)

	c, err := client.New(m.Config(), client.Options{})
	require.NoError(m, err)
	require.NoError(m, c.Create(m.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
		"metadata": map[string]any{"namespace": m.namespace, "name": "hello"},
		"spec": map[string]any{
			"type": "ClusterSetIP", "ips": []any{derived.Spec.ClusterIP}, "ipFamilies": []any{"IPv4"},
			"ports": []any{
				map[string]any{"name": "tcp", "port": int64(42), "protocol": "TCP"},
				map[string]any{"name": "udp", "port": int64(42), "protocol": "UDP"},
			},
		},
	}}))
	return derived.Spec.ClusterIP
}

// endpoints waits until a Service has that many ready ones, and gives their addresses.
func (m *member) endpoints(service string, count int) []string {
	m.Helper()
	var addresses []string
	m.eventually(func(ctx context.Context) error {
		addresses = nil
		slices, err := m.client.DiscoveryV1().EndpointSlices(m.namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
		if err != nil {
			return err
		}
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				if *endpoint.Conditions.Ready {
					addresses = append(addresses, endpoint.Addresses...)
				}
			}
		}
		if len(addresses) != count {
			return fmt.Errorf("endpoints of %s: %v, not %d", service, addresses, count)
		}
		return nil
	})
	return addresses
}

// hostnames gives the names of a headless Service's two endpoints, and their addresses.
func (m *member) hostnames(service string) map[string]string {
	m.Helper()
	m.endpoints(service, 2)
	slices, err := m.client.DiscoveryV1().EndpointSlices(m.namespace).List(m.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	require.NoError(m, err)
	names := map[string]string{}
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			require.NotNil(m, endpoint.Hostname)
			names[*endpoint.Hostname] = endpoint.Addresses[0]
		}
	}
	require.Len(m, names, 2)
	return names
}
