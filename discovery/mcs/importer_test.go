package mcs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/fleetling/fleetling/discovery/record"
)

var catalog = types.NamespacedName{Namespace: "shop", Name: "catalog"}

// world is one cluster, c1, and what its peers share. The fake client is no API
// server: it allocates no address, and nothing here rests on field ownership.
type world struct {
	*testing.T
	client.Client
	*Importer

	shares    map[types.NamespacedName][]Share
	unknown   bool
	published map[types.NamespacedName]bool
	forbidden string
	changed   int
	writes    []string
	events    *events.FakeRecorder
	now       time.Time
}

func (w *world) Shares(key types.NamespacedName) []Share { return w.shares[key] }

func (w *world) Settled(string, types.NamespacedName) bool { return !w.unknown }

func (w *world) Names(namespace string) []string {
	var names []string
	for key := range w.shares {
		if key.Namespace == namespace {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (w *world) Published(key types.NamespacedName, _ record.Export) bool { return w.published[key] }

func (w *world) Changed() { w.changed++ }

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(s))
	require.NoError(t, AddToScheme(s))
	w := &world{
		T: t, shares: map[types.NamespacedName][]Share{}, published: map[types.NamespacedName]bool{},
		events: events.NewFakeRecorder(100), now: created,
	}
	wrote := func(verb string, o any) { w.writes = append(w.writes, fmt.Sprintf("%s %T", verb, o)) }
	w.Client = fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).
		WithStatusSubresource(&v1beta1.ServiceExport{}, &v1beta1.ServiceImport{}).
		WithIndex(&discoveryv1.EndpointSlice{}, ownerIndex, ownerOf).
		WithInterceptorFuncs(interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				wrote("apply", o)
				return c.Apply(ctx, o, options...)
			},
			SubResourceApply: func(ctx context.Context, c client.Client, name string, o runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
				wrote("apply "+name, o)
				return c.SubResource(name).Apply(ctx, o, options...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				wrote("delete", o)
				return c.Delete(ctx, o, options...)
			},
		}).Build()
	w.Importer = New(Config{
		Client: w.Client, Cluster: "c1", Peers: w, Publisher: w, Events: w.events, Now: func() time.Time { return w.now },
		Permitted: func(namespace string) bool { return namespace != w.forbidden },
	})
	return w
}

// reconcile runs until nothing is written any more, which must be soon.
func (w *world) reconcile() {
	w.Helper()
	for range 3 {
		w.writes = nil
		_, err := w.Reconcile(w.Context(), reconcile.Request{NamespacedName: catalog})
		require.NoError(w, err)
		if len(w.writes) == 0 {
			return
		}
		w.allocate()
	}
	require.Empty(w, w.writes, "the third pass still writes")
}

// allocate is the API server's part.
func (w *world) allocate() {
	w.Helper()
	derived := &corev1.Service{}
	if !w.find(derived, derivedName("shop", "catalog")) || len(derived.Spec.ClusterIPs) > 0 {
		return
	}
	derived.Spec.ClusterIP, derived.Spec.ClusterIPs, derived.Spec.IPFamilies = "10.96.0.7", []string{"10.96.0.7"}, []corev1.IPFamily{corev1.IPv4Protocol}
	require.NoError(w, w.Update(w.Context(), derived))
}

func (w *world) find(into client.Object, name string) bool {
	w.Helper()
	err := w.Get(w.Context(), types.NamespacedName{Namespace: "shop", Name: name}, into)
	require.NoError(w, client.IgnoreNotFound(err))
	return err == nil
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		require.NoError(w, w.Create(w.Context(), o))
	}
}

func (w *world) delete(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		require.NoError(w, w.Delete(w.Context(), o))
	}
}

// endpoints are those of all imported slices, by source cluster.
func (w *world) endpoints() map[string][]string {
	w.Helper()
	var list discoveryv1.EndpointSliceList
	require.NoError(w, w.List(w.Context(), &list, client.MatchingLabels{discoveryv1.LabelManagedBy: slicesBy}))
	all := map[string][]string{}
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			all[slice.Labels[v1beta1.LabelSourceCluster]] = append(all[slice.Labels[v1beta1.LabelSourceCluster]], e.Addresses[0])
		}
	}
	return all
}

// imported is the ServiceImport, nil where there is none; then nothing else of it
// must be there.
func (w *world) imported() *v1beta1.ServiceImport {
	w.Helper()
	object := &v1beta1.ServiceImport{}
	if !w.find(object, "catalog") {
		assert.False(w, w.find(&corev1.Service{}, derivedName("shop", "catalog")), "the derived Service is still there")
		assert.Empty(w, w.endpoints())
		return nil
	}
	return object
}

func (w *world) clusters() []string {
	w.Helper()
	object := w.imported()
	if object == nil {
		return nil
	}
	var names []string
	for _, c := range object.Status.Clusters {
		names = append(names, c.Cluster)
	}
	return names
}

func (w *world) condition(kind v1beta1.ServiceExportConditionType) metav1.Condition {
	w.Helper()
	export := &v1beta1.ServiceExport{}
	require.True(w, w.find(export, "catalog"))
	condition := meta.FindStatusCondition(export.Status.Conditions, string(kind))
	require.NotNil(w, condition)
	return *condition
}

func namespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
}

// peerShare is a younger export of catalog than this cluster's.
func peerShare(cluster string, addresses ...string) Share {
	slice := aSlice("catalog", "x", addresses...)
	share, _ := observe(cluster, local{export: anExport("shop", "catalog"), service: aService("shop", "catalog"), slices: []discoveryv1.EndpointSlice{slice}})
	share.Export.Created = created.Add(time.Minute)
	return share
}

func exporting(t *testing.T) *world {
	t.Helper()
	slice := aSlice("catalog", "catalog-1", "10.1.0.1")
	return newWorld(t, namespace(), anExport("shop", "catalog"), aService("shop", "catalog"), &slice)
}

func TestAnExportIsImportedByItsOwnCluster(t *testing.T) {
	w := exporting(t)
	w.reconcile()
	object := w.imported()
	require.NotNil(t, object)
	assert.Equal(t, v1beta1.ClusterSetIP, object.Spec.Type)
	assert.Equal(t, []string{"10.96.0.7"}, object.Spec.IPs)
	assert.Equal(t, []corev1.IPFamily{corev1.IPv4Protocol}, object.Spec.IPFamilies)
	assert.Equal(t, v1beta1.EndpointSliceObjectsPresent, object.Status.EndpointSliceObjects)
	assert.True(t, meta.IsStatusConditionTrue(object.Status.Conditions, string(v1beta1.ServiceImportConditionReady)))
	assert.Equal(t, []string{"c1"}, w.clusters())
	assert.Equal(t, map[string][]string{"c1": {"10.1.0.1"}}, w.endpoints())
	service := &corev1.Service{}
	require.True(t, w.find(service, "catalog"))
	assert.Equal(t, aService("shop", "catalog").Spec, service.Spec, "the local Service is as it was")
}

func TestM1AnImportExistsWhileThereIsAnExport(t *testing.T) {
	w := exporting(t)
	w.shares[catalog] = []Share{peerShare("c2", "10.2.0.1")}
	w.reconcile()
	assert.Equal(t, []string{"c1", "c2"}, w.clusters())
	assert.Equal(t, map[string][]string{"c1": {"10.1.0.1"}, "c2": {"10.2.0.1"}}, w.endpoints())

	w.delete(anExport("shop", "catalog"))
	w.reconcile()
	assert.Equal(t, []string{"c2"}, w.clusters())
	assert.Equal(t, map[string][]string{"c2": {"10.2.0.1"}}, w.endpoints())
	ips := w.imported().Spec.IPs

	w.create(anExport("shop", "catalog"))
	w.reconcile()
	assert.Equal(t, ips, w.imported().Spec.IPs, "the address stays while the import lives")

	w.delete(anExport("shop", "catalog"))
	w.shares[catalog] = nil
	w.reconcile()
	assert.Nil(t, w.imported())
}

func TestM3TrafficReachesOnlyMembersThatHaveThePort(t *testing.T) {
	w := exporting(t)
	other := peerShare("c2", "10.2.0.1")
	other.Export.Ports[0].Port = 8080
	w.shares[catalog] = []Share{other}
	w.reconcile()
	assert.Equal(t, []v1beta1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}}, w.imported().Spec.Ports)
	assert.Equal(t, map[string][]string{"c1": {"10.1.0.1"}}, w.endpoints())
	assert.Equal(t, string(v1beta1.ServiceExportReasonPortConflict), w.condition(v1beta1.ServiceExportConditionConflict).Reason)
}

func TestM7NothingIsWrittenWhereTheNamespaceIsNot(t *testing.T) {
	w := newWorld(t)
	w.shares[catalog] = []Share{peerShare("c2", "10.2.0.1")}
	w.shares[types.NamespacedName{Namespace: "other", Name: "x"}] = []Share{peerShare("c2")}
	w.reconcile()
	assert.Nil(t, w.imported())

	for range 2 {
		w.create(namespace())
		assert.Equal(t, requests(catalog), w.ofNamespace(t.Context(), namespace()), "the namespace leads to what is imported there")
		w.reconcile()
		assert.Equal(t, []string{"c2"}, w.clusters())
		assert.NotEmpty(t, w.endpoints())

		// The namespace goes, and what is in it.
		w.delete(namespace(), w.imported(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: derivedName("shop", "catalog")}})
		require.NoError(t, w.DeleteAllOf(t.Context(), &discoveryv1.EndpointSlice{}, client.InNamespace("shop")))
		w.reconcile()
		assert.Nil(t, w.imported())
	}
}

func TestM7NothingIsWrittenIntoANamespaceThatGoes(t *testing.T) {
	going := namespace()
	going.Finalizers = []string{"example.com/wait"}
	w := newWorld(t, going)
	w.shares[catalog] = []Share{peerShare("c2", "10.2.0.1")}
	w.delete(namespace())
	w.reconcile()
	assert.Nil(t, w.imported())
}

func TestM9WhatWasWithdrawnMeanwhileGoesOnceThePeersAreKnown(t *testing.T) {
	w := exporting(t)
	w.shares[catalog] = []Share{peerShare("c2", "10.2.0.1")}
	w.reconcile()

	// The next process: the export is gone, and nothing is known of the peers yet.
	w.Importer = New(w.config)
	w.delete(anExport("shop", "catalog"))
	w.shares[catalog], w.unknown = nil, true
	w.reconcile()
	assert.Equal(t, []string{"c1", "c2"}, w.clusters(), "the import stands")
	assert.Equal(t, map[string][]string{"c2": {"10.2.0.1"}}, w.endpoints(), "the own endpoints go, the peer's stay")

	w.unknown = false
	w.reconcile()
	assert.Nil(t, w.imported())
}

func TestWhilePeersAreUnknownOnlyTheOwnSlicesChange(t *testing.T) {
	w := exporting(t)
	older := peerShare("c2", "10.2.0.1")
	older.Export.Created = created.Add(-time.Minute)
	older.Export.Ports[0].Port = 8080
	w.shares[catalog] = []Share{older}
	slice := aSlice("catalog", "catalog-2", "10.1.0.2")
	w.reconcile()
	before, conflict := w.imported(), w.condition(v1beta1.ServiceExportConditionConflict)
	require.Equal(t, metav1.ConditionTrue, conflict.Status)
	require.Equal(t, map[string][]string{"c2": {"10.2.0.1"}}, w.endpoints())

	w.shares[catalog], w.unknown = nil, true
	w.create(&slice)
	w.reconcile()
	assert.Equal(t, before, w.imported())
	assert.Equal(t, conflict, w.condition(v1beta1.ServiceExportConditionConflict))
	assert.Equal(t, map[string][]string{"c2": {"10.2.0.1"}}, w.endpoints(), "port http is still 8080, which c1 has not")

	service := &corev1.Service{}
	require.True(t, w.find(service, "catalog"))
	service.Spec.Ports[0].Port = 8080
	require.NoError(t, w.Update(t.Context(), service))
	w.reconcile()
	assert.ElementsMatch(t, []string{"10.1.0.1", "10.1.0.2"}, w.endpoints()["c1"])
	assert.Equal(t, []string{"10.2.0.1"}, w.endpoints()["c2"])
}

func TestB28AnExportIsImportedAlsoWhileNoPeerIsKnown(t *testing.T) {
	w := exporting(t)
	w.unknown = true
	w.reconcile()
	assert.Equal(t, []string{"c1"}, w.clusters())
}

func TestB28AnExportFollowsItsService(t *testing.T) {
	w := newWorld(t, namespace(), anExport("shop", "catalog"))
	w.reconcile()
	assert.Equal(t, string(v1beta1.ServiceExportReasonNoService), w.condition(v1beta1.ServiceExportConditionValid).Reason)
	assert.Nil(t, w.imported())

	slice := aSlice("catalog", "catalog-1", "10.1.0.1")
	for range 2 {
		w.create(aService("shop", "catalog"), slice.DeepCopy())
		w.reconcile()
		assert.Equal(t, metav1.ConditionTrue, w.condition(v1beta1.ServiceExportConditionValid).Status)
		assert.Equal(t, map[string][]string{"c1": {"10.1.0.1"}}, w.endpoints())

		w.delete(aService("shop", "catalog"), slice.DeepCopy())
		w.reconcile()
		assert.Equal(t, metav1.ConditionFalse, w.condition(v1beta1.ServiceExportConditionValid).Status)
		assert.Nil(t, w.imported())
	}
}

func TestB28ALabelOnTheServiceMakesNoSecondSlice(t *testing.T) {
	w := exporting(t)
	w.reconcile()
	service := &corev1.Service{}
	require.True(t, w.find(service, "catalog"))
	service.Labels["new"] = "label"
	require.NoError(t, w.Update(t.Context(), service))
	w.reconcile()
	assert.Empty(t, w.writes)
	assert.Equal(t, map[string][]string{"c1": {"10.1.0.1"}}, w.endpoints())
}

func TestB28EndpointsFollowTheSlices(t *testing.T) {
	w := exporting(t)
	second, third := aSlice("catalog", "catalog-2", "10.1.0.2"), aSlice("catalog", "catalog-3", "10.1.0.3")
	w.create(second.DeepCopy(), third.DeepCopy())
	w.reconcile()
	assert.ElementsMatch(t, []string{"10.1.0.1", "10.1.0.2", "10.1.0.3"}, w.endpoints()["c1"])
	w.delete(second.DeepCopy())
	w.reconcile()
	assert.ElementsMatch(t, []string{"10.1.0.1", "10.1.0.3"}, w.endpoints()["c1"])
}

func TestB29ConflictsStandOnTheExportUntilTheyAreOver(t *testing.T) {
	w := exporting(t)
	other := peerShare("c2")
	other.Export.Type, other.Export.SessionAffinity = headless, "ClientIP"
	w.shares[catalog] = []Share{other}
	w.reconcile()
	conflict := w.condition(v1beta1.ServiceExportConditionConflict)
	assert.Equal(t, "TypeConflict,SessionAffinityConflict", conflict.Reason)
	assert.Contains(t, conflict.Message, "cluster c1 decides, its export is the oldest")

	w.now = w.now.Add(time.Hour)
	w.Importer = New(w.config)
	w.reconcile()
	assert.Equal(t, conflict, w.condition(v1beta1.ServiceExportConditionConflict), "the same conflict is not written again")

	w.shares[catalog] = nil
	w.reconcile()
	over := w.condition(v1beta1.ServiceExportConditionConflict)
	assert.Equal(t, string(v1beta1.ServiceExportReasonNoConflicts), over.Reason)
	assert.True(t, over.LastTransitionTime.After(conflict.LastTransitionTime.Time))
}

func TestAChangeOfTypeMakesOrRemovesTheDerivedService(t *testing.T) {
	w := newWorld(t, namespace())
	share := peerShare("c2", "10.2.0.1")
	for _, kind := range []string{clusterSetIP, headless, clusterSetIP} {
		share.Export.Type = kind
		w.shares[catalog] = []Share{share}
		w.reconcile()
		object := w.imported()
		assert.Equal(t, kind, string(object.Spec.Type))
		assert.Equal(t, kind == clusterSetIP, w.find(&corev1.Service{}, derivedName("shop", "catalog")))
		assert.Equal(t, kind == clusterSetIP, len(object.Spec.IPs) == 1)
		assert.Equal(t, map[string][]string{"c2": {"10.2.0.1"}}, w.endpoints())
	}
}

func TestPortsThatChangeReachTheDerivedServiceAndItsAddressStays(t *testing.T) {
	w := exporting(t)
	w.reconcile()
	service := &corev1.Service{}
	require.True(t, w.find(service, "catalog"))
	service.Spec.Ports = []corev1.ServicePort{{Name: "web", Protocol: corev1.ProtocolTCP, Port: 81}}
	require.NoError(t, w.Update(t.Context(), service))
	w.reconcile()
	derived := &corev1.Service{}
	require.True(t, w.find(derived, derivedName("shop", "catalog")))
	assert.Equal(t, []string{"10.96.0.7"}, derived.Spec.ClusterIPs)
	require.Len(t, derived.Spec.Ports, 1)
	assert.Equal(t, "web", derived.Spec.Ports[0].Name)
	assert.Equal(t, "web", w.imported().Spec.Ports[0].Name)
}

func TestAnExportedLabelThatGoesIsTakenOff(t *testing.T) {
	w := exporting(t)
	w.reconcile()
	assert.Equal(t, "a", w.imported().Labels["team"])
	export := &v1beta1.ServiceExport{}
	require.True(t, w.find(export, "catalog"))
	export.Spec.ExportedLabels = nil
	require.NoError(t, w.Update(t.Context(), export))
	w.reconcile()
	assert.NotContains(t, w.imported().Labels, "team")
	assert.NotContains(t, w.imported().Labels, "own")
}

func TestWhatCanBeNoLabelIsLeftOutAndSaid(t *testing.T) {
	w := exporting(t)
	export := &v1beta1.ServiceExport{}
	require.True(t, w.find(export, "catalog"))
	export.Spec.ExportedLabels = map[string]string{"team": "a", "note": "not a label", "no key": "x"}
	export.Spec.ExportedAnnotations = map[string]string{"note": "any text", "no key": "x"}
	require.NoError(t, w.Update(t.Context(), export))
	w.reconcile()
	assert.Equal(t, map[string]string{managedBy: managedByValue, "team": "a"}, w.imported().Labels)
	assert.Equal(t, "any text", w.imported().Annotations["note"])
	assert.NotContains(t, w.imported().Annotations, "no key")
	valid := w.condition(v1beta1.ServiceExportConditionValid)
	assert.Equal(t, metav1.ConditionTrue, valid.Status)
	for _, part := range []string{`exportedLabels["note"]`, `exportedLabels["no key"]`, `exportedAnnotations["no key"]`} {
		assert.Contains(t, valid.Message, part)
	}
}

func TestWhatIsChangedOrDeletedByHandIsRepaired(t *testing.T) {
	slicesOfImport := func(w *world) *discoveryv1.EndpointSlice {
		var list discoveryv1.EndpointSliceList
		require.NoError(t, w.List(t.Context(), &list, client.MatchingLabels{discoveryv1.LabelManagedBy: slicesBy}))
		require.Len(t, list.Items, 1)
		return &list.Items[0]
	}
	tests := map[string]func(w *world){
		"the import is deleted": func(w *world) { w.delete(w.imported()) },
		"a slice is deleted":    func(w *world) { w.delete(slicesOfImport(w)) },
		"the derived Service is deleted": func(w *world) {
			w.delete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: derivedName("shop", "catalog")}})
		},
		"the import's ports are changed": func(w *world) {
			object := w.imported()
			object.Spec.Ports[0].Port = 81
			require.NoError(w, w.Update(w.Context(), object))
		},
		"the import's clusters are changed": func(w *world) {
			object := w.imported()
			object.Status.Clusters = append(object.Status.Clusters, v1beta1.ClusterStatus{Cluster: "c9"})
			require.NoError(w, w.Status().Update(w.Context(), object))
		},
		"an endpoint is added to a slice": func(w *world) {
			slice := slicesOfImport(w)
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"169.254.169.254"}})
			require.NoError(w, w.Update(w.Context(), slice))
		},
		"a slice is added": func(w *world) {
			slice := slicesOfImport(w).DeepCopy()
			slice.Name, slice.ResourceVersion = "by-hand", ""
			w.create(slice)
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			w := exporting(t)
			w.reconcile()
			change(w)
			w.reconcile()
			assert.Equal(t, []string{"10.96.0.7"}, w.imported().Spec.IPs)
			assert.Equal(t, int32(80), w.imported().Spec.Ports[0].Port)
			assert.Equal(t, []string{"c1"}, w.clusters())
			assert.Equal(t, map[string][]string{"c1": {"10.1.0.1"}}, w.endpoints())
		})
	}
}

func TestWhatOthersHaveMadeIsLeftAlone(t *testing.T) {
	theirs := func(w *world, o client.Object) client.Object {
		live, ok := o.DeepCopyObject().(client.Object)
		require.True(w, ok)
		require.True(w, w.find(live, o.GetName()))
		return live
	}
	tests := map[string]client.Object{
		"a ServiceImport": &v1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "catalog"}, Spec: v1beta1.ServiceImportSpec{Type: v1beta1.Headless}},
		"a Service of the derived one's name": &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: derivedName("shop", "catalog")}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.9"},
		},
	}
	for name, object := range tests {
		t.Run(name, func(t *testing.T) {
			w := exporting(t)
			w.create(object)
			before := theirs(w, object)
			_, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: catalog})
			require.ErrorIs(t, err, errNotOurs)
			require.ErrorIs(t, err, reconcile.TerminalError(nil), "its watch tells when it goes")
			assert.Contains(t, err.Error(), object.GetName())
			assert.Equal(t, before, theirs(w, object))
			assert.Empty(t, w.endpoints())
			assert.Equal(t, metav1.ConditionTrue, w.condition(v1beta1.ServiceExportConditionValid).Status, "it is exported all the same")
			require.Len(t, w.events.Events, 1)
			assert.Contains(t, <-w.events.Events, "OwnedByOther")

			w.delete(anExport("shop", "catalog"))
			w.reconcile()
			assert.Equal(t, before, theirs(w, object))
		})
	}
}

func TestReadyFollowsThePublisherWhichHearsOfEveryChangeOnce(t *testing.T) {
	w := exporting(t)
	w.reconcile()
	assert.Equal(t, 1, w.changed)
	ready := w.condition(v1beta1.ServiceExportConditionReady)
	assert.Equal(t, string(v1beta1.ServiceExportReasonPending), ready.Reason)

	w.published[catalog] = true
	w.reconcile()
	assert.Equal(t, 1, w.changed)
	ready = w.condition(v1beta1.ServiceExportConditionReady)
	assert.Equal(t, metav1.ConditionTrue, ready.Status)
	assert.Equal(t, string(v1beta1.ServiceExportReasonExported), ready.Reason)
	assert.EqualValues(t, 1, ready.ObservedGeneration)

	slice := aSlice("catalog", "catalog-2", "10.1.0.2")
	w.create(&slice)
	w.reconcile()
	assert.Equal(t, 2, w.changed)
	w.delete(anExport("shop", "catalog"))
	w.reconcile()
	assert.Equal(t, 3, w.changed)
}

func TestAnExportThatIsNotPermittedSaysSo(t *testing.T) {
	w := exporting(t)
	w.forbidden = "shop"
	w.reconcile()
	assert.Equal(t, string(reasonNotPermitted), w.condition(v1beta1.ServiceExportConditionValid).Reason)
	assert.Nil(t, w.imported())
	all, err := w.Exports(t.Context())
	require.NoError(t, err)
	assert.Empty(t, all)
}

func TestAnExportThatIsBeingDeletedHasEnded(t *testing.T) {
	w := exporting(t)
	export := &v1beta1.ServiceExport{}
	require.True(t, w.find(export, "catalog"))
	export.Finalizers = []string{"example.com/wait"}
	require.NoError(t, w.Update(t.Context(), export))
	w.reconcile()
	require.NotNil(t, w.imported())
	w.delete(anExport("shop", "catalog"))
	w.reconcile()
	assert.Nil(t, w.imported())
}

func TestExportsAreSortedAndOnlyThoseThatAreValid(t *testing.T) {
	slice := aSlice("catalog", "catalog-1", "10.1.0.1")
	imported := aSlice(derivedName("shop", "catalog"), "x", "10.2.0.1")
	imported.Labels[discoveryv1.LabelManagedBy] = slicesBy
	w := newWorld(t, anExport("shop", "orders"), anExport("shop", "catalog"), anExport("bank", "z"), anExport("shop", "without"),
		aService("shop", "orders"), aService("shop", "catalog"), aService("bank", "z"), &slice, &imported)
	all, err := w.Exports(t.Context())
	require.NoError(t, err)
	var got []string
	for _, s := range all {
		got = append(got, fmt.Sprintf("%s %s %d", s.Cluster, s.Key(), len(s.Slices)))
	}
	assert.Equal(t, []string{"c1 bank/z 0", "c1 shop/catalog 1", "c1 shop/orders 0"}, got)
}

func TestAClusterWithoutTheFamilySaysSo(t *testing.T) {
	w := newWorld(t, namespace())
	share := peerShare("c2")
	share.Export.IPFamilies = []string{"IPv6"}
	w.shares[catalog] = []Share{share}
	w.reconcile()
	object := w.imported()
	assert.Empty(t, object.Spec.IPs)
	condition := meta.FindStatusCondition(object.Status.Conditions, string(v1beta1.ServiceImportConditionReady))
	require.NotNil(t, condition)
	assert.Equal(t, string(v1beta1.ServiceImportReasonIPFamilyNotSupported), condition.Reason)
}

func TestEventsLeadToTheService(t *testing.T) {
	w := exporting(t)
	derived, imported := aService("shop", derivedName("shop", "catalog")), aSlice(derivedName("shop", "catalog"), "x")
	derived.Labels = map[string]string{managedBy: managedByValue, v1beta1.LabelServiceName: "catalog"}
	imported.Labels = map[string]string{discoveryv1.LabelManagedBy: slicesBy, v1beta1.LabelServiceName: "catalog", discoveryv1.LabelServiceName: derived.Name}
	exported, other, free := aSlice("catalog", "x"), aSlice("other", "x"), aSlice("", "x")
	ctx := t.Context()
	assert.Equal(t, requests(catalog), w.ofService(ctx, aService("shop", "catalog")))
	assert.Equal(t, requests(catalog), w.ofService(ctx, derived))
	assert.Empty(t, w.ofService(ctx, aService("shop", "other")))
	assert.Equal(t, requests(catalog), w.ofSlice(ctx, &exported))
	assert.Equal(t, requests(catalog), w.ofSlice(ctx, &imported))
	assert.Empty(t, w.ofSlice(ctx, &other))
	assert.Empty(t, w.ofSlice(ctx, &free))
}

func TestWakeIsHeardAlsoBeforeTheStart(t *testing.T) {
	w := newWorld(t)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	w.Wake(catalog, catalog)
	require.NoError(t, w.listen(t.Context(), queue))
	assert.Equal(t, 1, queue.Len())
	w.Wake(types.NamespacedName{Namespace: "shop", Name: "orders"})
	assert.Equal(t, 2, queue.Len())
}

func TestTheCacheForgetsWhatNobodyAsksFor(t *testing.T) {
	for kind, by := range CacheOptions() {
		kind.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x"}})
		if slice, ok := kind.(*discoveryv1.EndpointSlice); ok {
			slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, NodeName: new("n"), TargetRef: &corev1.ObjectReference{}}}
		}
		_, err := by.Transform(kind)
		require.NoError(t, err)
		assert.Empty(t, kind.GetManagedFields())
		if slice, ok := kind.(*discoveryv1.EndpointSlice); ok {
			assert.Equal(t, []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}, slice.Endpoints)
		}
	}
}

func TestNamesAreLegalAndTheReferences(t *testing.T) {
	// The MCS API's own reference: "derived-" and base32hex of sha256.
	assert.Len(t, derivedName("shop", "catalog"), len("derived-")+10)
	long := strings.Repeat("a", 63)
	share := peerShare(long, "10.2.0.1")
	share.Export.Namespace, share.Export.Name = long, long
	for _, slice := range endpointSlices(Merge([]Share{share})) {
		assert.LessOrEqual(t, len(slice.Name), 253)
	}
}

func TestASliceHasAtMostWhatTheAPIAllows(t *testing.T) {
	var addresses []string
	for i := range 2500 {
		addresses = append(addresses, fmt.Sprintf("10.2.%d.%d", i/250, i%250))
	}
	all := endpointSlices(Merge([]Share{peerShare("c2", addresses...)}))
	names, count := map[string]bool{}, 0
	for _, slice := range all {
		names[slice.Name] = true
		assert.LessOrEqual(t, len(slice.Endpoints), 1000)
		count += len(slice.Endpoints)
	}
	assert.Len(t, names, 3)
	assert.Equal(t, 2500, count)
}

func TestWithin(t *testing.T) {
	type m = map[string]any
	tests := map[string]struct {
		want, have any
		holds      bool
	}{
		"equal":                            {m{"a": int64(1)}, m{"a": int64(1)}, true},
		"more in it":                       {m{"a": m{"b": "c"}}, m{"a": m{"b": "c", "d": "e"}, "f": true}, true},
		"another value":                    {m{"a": "b"}, m{"a": "c"}, false},
		"not there":                        {m{"a": "b"}, m{}, false},
		"an empty list and none":           {m{"a": []any{}}, m{}, true},
		"an empty map and none":            {m{"a": m{}}, m{}, true},
		"a longer list":                    {[]any{"a"}, []any{"a", "b"}, false},
		"a shorter list":                   {[]any{"a", "b"}, []any{"a"}, false},
		"the order does not matter":        {[]any{m{"p": int64(1)}, m{"p": int64(2)}}, []any{m{"p": int64(2), "d": 1}, m{"p": int64(1)}}, true},
		"another element":                  {[]any{m{"p": int64(1)}}, []any{m{"p": int64(3)}}, false},
		"a map where a string is expected": {m{"a": "b"}, m{"a": m{}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.holds, within(test.want, test.have)) })
	}
}
