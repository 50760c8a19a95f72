package mcs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/fleetling/fleetling/discovery/record"
)

var created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func anExport(namespace, name string) *v1beta1.ServiceExport {
	return &v1beta1.ServiceExport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(created), Generation: 1,
			Labels: map[string]string{"own": "label"}, Annotations: map[string]string{"own": "annotation"},
		},
		Spec: v1beta1.ServiceExportSpec{ExportedLabels: map[string]string{"team": "a"}, ExportedAnnotations: map[string]string{"note": "b"}},
	}
}

func aService(namespace, name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"own": "label"}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			SessionAffinity: corev1.ServiceAffinityNone,
			Ports:           []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		},
	}
}

func aSlice(service, name string, addresses ...string) discoveryv1.EndpointSlice {
	slice := discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(created),
			Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}})
	}
	return slice
}

func TestObserveTheService(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Service)
		want   func(*record.Export)
	}{
		"what it is: only exported labels and annotations travel": {},
		"a NodePort Service is a ClusterSetIP": {
			change: func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort },
		},
		"a LoadBalancer Service is a ClusterSetIP": {
			change: func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer },
		},
		"a Service without an address is headless": {
			change: func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone },
			want:   func(e *record.Export) { e.Type = headless },
		},
		"a Service without a selector is like any other": {
			change: func(s *corev1.Service) { s.Spec.Selector = nil },
		},
		"affinity with its time": {
			change: func(s *corev1.Service) {
				s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
				s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(10))}}
			},
			want: func(e *record.Export) { e.SessionAffinity, e.AffinityTimeoutSeconds = "ClientIP", 10 },
		},
		"traffic policies": {
			change: func(s *corev1.Service) {
				s.Spec.InternalTrafficPolicy, s.Spec.TrafficDistribution = new(corev1.ServiceInternalTrafficPolicyLocal), new("PreferClose")
			},
			want: func(e *record.Export) { e.InternalTrafficPolicy, e.TrafficDistribution = "Local", "PreferClose" },
		},
		"both families, in the Service's order": {
			change: func(s *corev1.Service) {
				s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
			},
			want: func(e *record.Export) { e.IPFamilies = []string{"IPv6", "IPv4"} },
		},
		"ports sorted, without targets": {
			change: func(s *corev1.Service) {
				s.Spec.Ports = []corev1.ServicePort{{Name: "b", Protocol: corev1.ProtocolUDP, Port: 53, NodePort: 30053}, {Name: "a", Port: 53, AppProtocol: new("dns")}}
			},
			want: func(e *record.Export) {
				e.Ports = []record.Port{{Name: "a", Protocol: "TCP", Port: 53, AppProtocol: "dns"}, {Name: "b", Protocol: "UDP", Port: 53}}
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			service := aService("shop", "catalog")
			want := record.Export{
				Namespace: "shop", Name: "catalog", Created: created, Type: clusterSetIP, SessionAffinity: noAffinity, IPFamilies: []string{"IPv4"},
				Ports:  []record.Port{{Name: "http", Protocol: "TCP", Port: 80}},
				Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "b"},
			}
			if test.change != nil {
				test.change(service)
			}
			if test.want != nil {
				test.want(&want)
			}
			got, why := observe("c1", local{export: anExport("shop", "catalog"), service: service})
			require.Nil(t, why)
			assert.Equal(t, "c1", got.Cluster)
			if diff := cmp.Diff(want, got.Export); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestObserveWhyNothingIsExported(t *testing.T) {
	external, derived := aService("shop", "catalog"), aService("shop", "catalog")
	external.Spec.Type = corev1.ServiceTypeExternalName
	derived.Labels[managedBy] = managedByValue
	tests := map[string]struct {
		service *corev1.Service
		want    v1beta1.ServiceExportConditionReason
	}{
		"B28 there is no Service": {nil, v1beta1.ServiceExportReasonNoService},
		"an ExternalName Service": {external, v1beta1.ServiceExportReasonInvalidServiceType},
		"a Service of an import":  {derived, v1beta1.ServiceExportReasonInvalidServiceType},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, why := observe("c1", local{export: anExport("shop", "catalog"), service: test.service})
			require.NotNil(t, why)
			assert.Equal(t, test.want, why.reason)
		})
	}
}

func TestObserveEndpoints(t *testing.T) {
	newer := aSlice("catalog", "a-newer", "10.0.0.10", "10.0.0.9")
	newer.Endpoints[0].Zone = new("no label")
	older := aSlice("catalog", "b-older", "10.0.0.3", "10.0.0.1")
	older.Ports = append(older.Ports, discoveryv1.EndpointPort{Name: new("all")}, discoveryv1.EndpointPort{Name: new("dns"), Protocol: new(corev1.ProtocolUDP), Port: new(int32(53))},
		discoveryv1.EndpointPort{Name: new("app"), Port: new(int32(1)), AppProtocol: new("http")})
	older.Endpoints = append(older.Endpoints,
		discoveryv1.Endpoint{
			Addresses: []string{"10.0.0.2", "10.0.0.99"}, Hostname: new("catalog-0"), Zone: new("z1"), NodeName: new("node"), TargetRef: &corev1.ObjectReference{Kind: "Pod"},
			Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)},
		},
		discoveryv1.Endpoint{Addresses: []string{"10.0.0.4"}},
		discoveryv1.Endpoint{Addresses: []string{"010.0.0.5"}}, discoveryv1.Endpoint{},
		discoveryv1.Endpoint{Addresses: []string{"10.0.0.6"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(false)}},
	)
	names := aSlice("catalog", "c-names", "example.com")
	names.AddressType = discoveryv1.AddressTypeFQDN
	v6 := aSlice("catalog", "d-v6", "FD00:0::1")
	v6.AddressType = discoveryv1.AddressTypeIPv6
	empty := aSlice("catalog", "e-empty")

	got := slicesOf([]discoveryv1.EndpointSlice{newer, older, names, v6, empty})
	want := []record.Slice{
		{
			AddressType: "IPv4",
			Ports: []record.SlicePort{
				{Name: "app", Protocol: "TCP", AppProtocol: "http", Port: 1}, {Name: "dns", Protocol: "UDP", Port: 53}, {Name: "http", Protocol: "TCP", Port: 8080},
			},
			Endpoints: []record.Endpoint{
				{Address: "10.0.0.1", Ready: true, Serving: true},
				{Address: "10.0.0.2", Serving: true, Terminating: true, Hostname: "catalog-0", Zone: "z1"},
				{Address: "10.0.0.3", Ready: true, Serving: true},
				{Address: "10.0.0.4", Ready: true, Serving: true},
				{Address: "10.0.0.6", Ready: true},
			},
		},
		{
			AddressType: "IPv4", Ports: []record.SlicePort{{Name: "http", Protocol: "TCP", Port: 8080}},
			Endpoints: []record.Endpoint{{Address: "10.0.0.9", Ready: true, Serving: true}, {Address: "10.0.0.10", Ready: true, Serving: true}},
		},
		{AddressType: "IPv6", Ports: []record.SlicePort{{Name: "http", Protocol: "TCP", Port: 8080}}, Endpoints: []record.Endpoint{{Address: "fd00::1", Ready: true, Serving: true}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
