package sharing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/harness"
)

// Tests that are parallel may run while ap is cut off (partition_test.go): they use
// eu and us only, change nothing of the fleet, and stop no agent.

func TestM1AWithdrawnExportIsGoneEverywhere(t *testing.T) {
	t.Parallel()
	all := sides(t, "eu", "us")
	eu, us := all[0], all[1]
	eu.handmade("catalog", tcp("http", 80))
	eu.export("catalog")
	us.has("catalog", "eu", 1)

	eu.unexport("catalog")
	for _, s := range all {
		s.notImported("catalog")
		s.nothingDerived("catalog")
	}

	us.handmade("catalog", tcp("http", 80))
	eu.export("catalog")
	us.export("catalog")
	for _, s := range all {
		s.imported("catalog", "eu", "us")
		s.has("catalog", "eu", 1)
		s.has("catalog", "us", 1)
	}
	eu.unexport("catalog")
	for _, s := range all {
		s.imported("catalog", "us")
		s.has("catalog", "us", 1)
		s.noSlices("catalog", "eu")
	}
}

func TestM3APortWhoseNameIsTakenGetsNoTraffic(t *testing.T) {
	t.Parallel()
	all := sides(t, "eu", "us")
	eu, us := all[0], all[1]
	eu.handmade("cart", tcp("http", 80))
	us.handmade("cart", tcp("http", 8080))
	eu.oldest("cart")
	us.export("cart")

	for _, s := range all {
		s.imported("cart", "eu", "us")
		s.exposes("cart", v1beta1.ClusterSetIP, "http 80/TCP")
		s.has("cart", "eu", 1)
		s.noSlices("cart", "us")
		s.says("cart", v1beta1.ServiceExportConditionConflict, metav1.ConditionTrue, string(v1beta1.ServiceExportReasonPortConflict))
	}
}

func TestM5AllPortsWithOneTargetAreReached(t *testing.T) {
	t.Parallel()
	all := sides(t, "eu", "us")
	eu, us := all[0], all[1]
	eu.backend("catalog", 1, func(s *corev1.Service) {
		s.Spec.Ports = []corev1.ServicePort{targeting("a", 80), targeting("b", 8080), targeting("c", 9090)}
	})
	eu.export("catalog")
	us.request()
	us.has("catalog", "eu", 1)
	ports := map[string]int32{}
	for _, slice := range us.slices("catalog", "eu") {
		for _, p := range slice.Ports {
			ports[*p.Name] = *p.Port
		}
	}
	assert.Equal(t, map[string]int32{"a": 42, "b": 42, "c": 42}, ports)
	for _, port := range []int{80, 8080, 9090} {
		us.prints("from eu", fmt.Sprintf("echo hi | nc -v -w 2 -4 %s %d 2>&1", us.name("catalog"), port))
	}
}

func TestM7ANamespaceThatComesBackOrLaterIsFilled(t *testing.T) {
	t.Parallel()
	all := sides(t, "eu", "us")
	eu, us := all[0], all[1]
	eu.handmade("catalog", tcp("http", 80))
	eu.export("catalog")
	us.has("catalog", "eu", 1)

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: us.namespace}}
	require.NoError(t, us.Client.Delete(t.Context(), namespace))
	require.NoError(t, us.Absent(t.Context(), namespace))
	us.makeNamespace()
	us.imported("catalog", "eu")
	us.has("catalog", "eu", 1)
	us.derives("catalog")

	late := sides(t, "eu")[0]
	late.handmade("catalog", tcp("http", 80))
	late.export("catalog")
	late.imported("catalog", "eu")
	us.namespace = late.namespace
	us.makeNamespace()
	t.Cleanup(func() {
		_ = us.Client.Delete(context.WithoutCancel(t.Context()), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: late.namespace}})
	})
	us.imported("catalog", "eu")
	us.has("catalog", "eu", 1)
	us.derives("catalog")
}

func TestM9WhatEndedWhileTheAgentWasDownIsWithdrawn(t *testing.T) {
	all := sides(t, "ap", "eu")
	ap, eu := all[0], all[1]
	ap.handmade("first", tcp("http", 80))
	ap.backend("second", 2, nil)
	eu.handmade("other", tcp("http", 80))
	ap.export("first")
	ap.export("second")
	eu.export("other")
	eu.has("first", "ap", 1)
	eu.has("second", "ap", 2)
	ap.has("other", "eu", 1)
	other := ap.identities("other")
	before := published(t, "ap").Sequence

	ap.stopAgent()
	require.NoError(t, ap.Client.Delete(t.Context(), &corev1.Service{ObjectMeta: ap.meta("first")}))
	require.NoError(t, ap.Client.Delete(t.Context(), &discoveryv1.EndpointSlice{ObjectMeta: ap.meta("first")}))
	ap.scale("second", 1)
	ap.startAgent()

	eu.eventually(func(ctx context.Context) error {
		ready, _, err := eu.endpoints(ctx, "second", "ap")
		require.NoError(t, err)
		require.NotEmpty(t, ready, "nothing is withdrawn before it is known")
		if len(ready) != 1 {
			return fmt.Errorf("%d endpoints", len(ready))
		}
		return nil
	})
	for _, s := range all {
		s.notImported("first")
		s.nothingDerived("first")
	}
	assert.Greater(t, published(t, "ap").Sequence, before)
	assert.Equal(t, other, ap.identities("other"), "nobody else's is touched")
	ap.has("other", "eu", 1)
	eu.has("other", "eu", 1)
}

func TestB28AnImportIsThereWhileThereIsAnExport(t *testing.T) {
	all := sides(t, "ap", "eu")
	ap, eu := all[0], all[1]
	ap.export("catalog")
	ap.says("catalog", v1beta1.ServiceExportConditionValid, metav1.ConditionFalse, string(v1beta1.ServiceExportReasonNoService))
	eu.notImported("catalog")

	labels := map[string]string{"app": "catalog"}
	ap.backend("catalog", 1, nil)
	ap.says("catalog", v1beta1.ServiceExportConditionValid, metav1.ConditionTrue, string(v1beta1.ServiceExportReasonValid))
	ap.says("catalog", v1beta1.ServiceExportConditionReady, metav1.ConditionTrue, string(v1beta1.ServiceExportReasonExported))
	eu.imported("catalog", "ap")
	eu.has("catalog", "ap", 1)

	service := &corev1.Service{ObjectMeta: ap.meta("catalog")}
	require.NoError(t, ap.Client.Delete(t.Context(), service))
	eu.notImported("catalog")
	eu.nothingDerived("catalog")
	ap.service("catalog", labels, nil)
	eu.has("catalog", "ap", 1)

	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":"gold"}}}`))
	require.NoError(t, ap.Client.Patch(t.Context(), service, patch))
	ap.scale("catalog", 2)
	eu.has("catalog", "ap", 2)
	assert.Len(t, eu.slices("catalog", "ap"), 1, "nothing is doubled by a new label")

	before := eu.identities("catalog")
	require.NoError(t, eu.Agent.Restart(true))
	ap.scale("catalog", 1)
	eu.has("catalog", "ap", 1)
	assert.Equal(t, before, eu.identities("catalog"), "a restart with nothing on disk removes nothing")

	ap.stopAgent()
	require.NoError(t, ap.Client.Delete(t.Context(), service))
	ap.startAgent()
	eu.notImported("catalog")
	ap.says("catalog", v1beta1.ServiceExportConditionValid, metav1.ConditionFalse, string(v1beta1.ServiceExportReasonNoService))
}

func TestB28TheRegistryIsDownDuringAnExport(t *testing.T) {
	all := sides(t, "ap", "eu")
	ap, eu := all[0], all[1]
	ap.handmade("kept", tcp("http", 80))
	ap.export("kept")
	eu.has("kept", "ap", 1)
	before := eu.identities("kept")

	w.registry.SetDown(true)
	t.Cleanup(func() { w.registry.SetDown(false) })
	ap.handmade("late", tcp("http", 80))
	ap.export("late")
	ap.says("late", v1beta1.ServiceExportConditionValid, metav1.ConditionTrue, string(v1beta1.ServiceExportReasonValid))
	ap.says("late", v1beta1.ServiceExportConditionReady, metav1.ConditionFalse, string(v1beta1.ServiceExportReasonPending))
	ap.has("late", "ap", 1)
	require.NoError(t, ap.Condition(t.Context(), v1alpha1.Connected, "NotPublished"))
	assert.Equal(t, before, eu.identities("kept"))
	eu.notImported("late")

	w.registry.SetDown(false)
	eu.imported("late", "ap")
	eu.has("late", "ap", 1)
	ap.says("late", v1beta1.ServiceExportConditionReady, metav1.ConditionTrue, string(v1beta1.ServiceExportReasonExported))
	assert.Equal(t, before, eu.identities("kept"))
}

func TestB29TheOldestOfConflictingExportsDecides(t *testing.T) {
	all := sides(t, "ap", "eu", "us")
	ap, eu, us := all[0], all[1], all[2]
	ap.handmade("catalog", tcp("http", 80))
	eu.handmade("catalog", tcp("http", 8080), func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone })
	us.handmade("catalog", corev1.ServicePort{Port: 80, Protocol: corev1.ProtocolUDP}, func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
	us.handmade("unrelated", tcp("http", 80))
	ap.oldest("catalog")
	eu.oldest("catalog")
	us.export("catalog")
	us.export("unrelated")

	const three = "PortConflict,TypeConflict,SessionAffinityConflict"
	for _, s := range all {
		s.imported("catalog", "ap", "eu", "us")
		s.says("catalog", v1beta1.ServiceExportConditionConflict, metav1.ConditionTrue, three)
		s.exposes("catalog", v1beta1.ClusterSetIP, "http 80/TCP", "udp-80 80/UDP")
		s.has("catalog", "ap", 1)
		s.has("catalog", "us", 1)
		s.noSlices("catalog", "eu")
		s.opens("catalog", "ap", "http")
		s.opens("catalog", "us", "udp-80")
		s.imported("unrelated", "us")
	}
	us.says("unrelated", v1beta1.ServiceExportConditionConflict, metav1.ConditionFalse, string(v1beta1.ServiceExportReasonNoConflicts))

	stood := ap.imported("catalog", "ap", "eu", "us")
	ap.handmade("another", tcp("http", 80))
	ap.export("another")
	us.imported("another", "ap")
	assert.Equal(t, stood.ResourceVersion, ap.read("catalog").ResourceVersion, "what has been decided stands")

	ap.unexport("catalog")
	for _, s := range []*side{eu, us} {
		s.imported("catalog", "eu", "us")
		s.exposes("catalog", v1beta1.Headless, "http 8080/TCP", "udp-80 80/UDP")
		s.says("catalog", v1beta1.ServiceExportConditionConflict, metav1.ConditionTrue, three)
	}
	eu.unexport("catalog")
	for _, s := range all {
		s.imported("catalog", "us")
		s.exposes("catalog", v1beta1.ClusterSetIP, " 80/UDP")
	}
	us.says("catalog", v1beta1.ServiceExportConditionConflict, metav1.ConditionFalse, string(v1beta1.ServiceExportReasonNoConflicts))
}

func tcp(name string, port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: port, Protocol: corev1.ProtocolTCP}
}

// targeting is a port that leads to where the backend listens.
func targeting(name string, port int32) corev1.ServicePort {
	p := tcp(name, port)
	p.TargetPort.IntVal = 42
	return p
}

// handmade is a Service without a selector, with one endpoint in the range of its
// cluster where nothing listens.
func (s *side) handmade(name string, port corev1.ServicePort, edit ...func(*corev1.Service)) {
	s.Helper()
	s.service(name, nil, func(service *corev1.Service) {
		service.Spec.Ports = []corev1.ServicePort{port}
		for _, e := range edit {
			e(service)
		}
	})
	address := s.cluster.Site.Pods().Addr().As4()
	address[3] = 250
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: s.meta(name), AddressType: discoveryv1.AddressTypeIPv4,
		Ports:     []discoveryv1.EndpointPort{{Name: &port.Name, Port: &port.Port, Protocol: &port.Protocol}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{fmt.Sprintf("%d.%d.%d.%d", address[0], address[1], address[2], address[3])}}},
	}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: name}
	require.NoError(s.T, s.Client.Create(s.Context(), slice))
}

// oldest exports a Service, and returns when exports that come later are younger:
// creation times have seconds.
func (s *side) oldest(name string) {
	s.Helper()
	created := s.export(name).CreationTimestamp
	require.NoError(s.T, harness.Until(s.Context(), func(context.Context) (bool, error) { return time.Now().Unix() > created.Unix(), nil }))
}

// says waits until a condition of a ServiceExport is so.
func (s *side) says(name string, kind v1beta1.ServiceExportConditionType, status metav1.ConditionStatus, reason string) {
	s.Helper()
	s.eventually(func(ctx context.Context) error {
		e := &v1beta1.ServiceExport{ObjectMeta: s.meta(name)}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(e.Status.Conditions, string(kind)); c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("%s of export %s is %+v, not %s %s", kind, name, c, status, reason)
		}
		return nil
	})
}

func (s *side) read(name string) *v1beta1.ServiceImport {
	s.Helper()
	found := &v1beta1.ServiceImport{ObjectMeta: s.meta(name)}
	require.NoError(s.T, s.Client.Get(s.Context(), client.ObjectKeyFromObject(found), found))
	return found
}

// exposes waits until an import has a type and exactly these ports, in any order.
func (s *side) exposes(name string, kind v1beta1.ServiceImportType, want ...string) {
	s.Helper()
	s.eventually(func(context.Context) error {
		found := s.read(name)
		var ports []string
		for _, p := range found.Spec.Ports {
			ports = append(ports, fmt.Sprintf("%s %d/%s", p.Name, p.Port, p.Protocol))
		}
		slices.Sort(ports)
		if found.Spec.Type != kind || !slices.Equal(ports, want) {
			return fmt.Errorf("import %s is %s with ports %q, not %s with %q", name, found.Spec.Type, ports, kind, want)
		}
		return nil
	})
}

// slices are what is imported of a cluster.
func (s *side) slices(name, from string) []discoveryv1.EndpointSlice {
	s.Helper()
	var list discoveryv1.EndpointSliceList
	require.NoError(s.T, s.Client.List(s.Context(), &list, client.InNamespace(s.namespace), client.MatchingLabels{
		v1beta1.LabelServiceName: name, v1beta1.LabelSourceCluster: from,
	}))
	return list.Items
}

func (s *side) noSlices(name, from string) {
	s.Helper()
	s.eventually(func(context.Context) error {
		if found := s.slices(name, from); len(found) > 0 {
			return fmt.Errorf("%d slices of %s are there", len(found), from)
		}
		return nil
	})
}

// opens checks which ports lead to a cluster.
func (s *side) opens(name, from string, want ...string) {
	s.Helper()
	var ports []string
	for _, slice := range s.slices(name, from) {
		for _, p := range slice.Ports {
			ports = append(ports, *p.Name)
		}
	}
	assert.Equal(s.T, want, ports, "ports of %s in %s", from, s.cluster.Name())
}

// derived are the objects that are made of an import.
func (s *side) derived(ctx context.Context, name string) (services, slices int, _ error) {
	of := client.MatchingLabels{v1beta1.LabelServiceName: name}
	var serviceList corev1.ServiceList
	var sliceList discoveryv1.EndpointSliceList
	err := errors.Join(s.Client.List(ctx, &serviceList, client.InNamespace(s.namespace), of), s.Client.List(ctx, &sliceList, client.InNamespace(s.namespace), of))
	return len(serviceList.Items), len(sliceList.Items), err
}

func (s *side) derives(name string) {
	s.Helper()
	s.eventually(func(ctx context.Context) error {
		services, slices, err := s.derived(ctx, name)
		if err == nil && (services != 1 || slices == 0) {
			err = fmt.Errorf("%d Services and %d slices", services, slices)
		}
		return err
	})
}

func (s *side) nothingDerived(name string) {
	s.Helper()
	s.eventually(func(ctx context.Context) error {
		services, slices, err := s.derived(ctx, name)
		if err == nil && services+slices > 0 {
			err = fmt.Errorf("%d Services and %d slices are left", services, slices)
		}
		return err
	})
}

// identities are the UIDs of an import and of all that is made of it: they differ
// when something was made anew.
func (s *side) identities(name string) []types.UID {
	s.Helper()
	all := []types.UID{s.read(name).UID}
	of := client.MatchingLabels{v1beta1.LabelServiceName: name}
	var services corev1.ServiceList
	require.NoError(s.T, s.Client.List(s.Context(), &services, client.InNamespace(s.namespace), of))
	for i := range services.Items {
		all = append(all, services.Items[i].UID)
	}
	var list discoveryv1.EndpointSliceList
	require.NoError(s.T, s.Client.List(s.Context(), &list, client.InNamespace(s.namespace), of))
	for i := range list.Items {
		all = append(all, list.Items[i].UID)
	}
	slices.Sort(all)
	return all
}
