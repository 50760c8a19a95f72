package apply

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fleetOf is n ConfigMaps in 20 add-ons, and a cluster that holds them all as
// they are wanted.
func fleetOf(tb testing.TB, n int) (Wanted, Observed) {
	tb.Helper()
	const addOns = 20
	wanted := Wanted{Whole: true}
	seen := Observed{
		Inventory: Inventory{}, Kinds: kindsOf(tb, "v1 ConfigMap namespaced", "v1 Namespace cluster"),
		Live: map[ID]*Live{}, Synced: map[schema.GroupKind]bool{{Kind: "ConfigMap"}: true},
		Applied: map[ID]Applied{}, Retries: map[ID]Retry{}, Now: time.Unix(1767225600, 0),
	}
	for a := range addOns {
		name := "add-on-" + strconv.Itoa(a)
		var manifests []Manifest
		for i := range n / addOns {
			manifests = append(manifests, Manifest{configMap("shop-of-"+name, fmt.Sprintf("settings-%04d", i)), name + "/" + strconv.Itoa(i) + ".yaml"})
		}
		objects, failures := Decode(name, manifests)
		require.Empty(tb, failures)
		wanted.AddOns = append(wanted.AddOns, AddOn{Name: name, Objects: objects, Whole: true})
		seen.Inventory[name] = Set{}
		for i, o := range objects {
			id := ID{Kind: "ConfigMap", Namespace: o.Namespace, Name: o.Name}
			live := Live{UID: "u", Version: uint64(i + 1), Fields: "f", AddOn: name, Health: "Current"}
			seen.Inventory[name][id], seen.Live[id] = Held, &live
			seen.Applied[id] = Applied{Digest: o.Digest, Fields: live.Fields, UID: live.UID}
		}
	}
	return wanted, seen
}

func configMap(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"data":     map[string]any{"key": "value"},
	}}
}

func BenchmarkNewPlanOfAQuietCluster(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			wanted, seen := fleetOf(b, n)
			b.ReportAllocs()
			for b.Loop() {
				require.Zero(b, countSteps(NewPlan(wanted, seen)))
			}
		})
	}
}

func BenchmarkNewPlanWhereAllHasChanged(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			wanted, seen := fleetOf(b, n)
			clear(seen.Applied)
			b.ReportAllocs()
			for b.Loop() {
				require.Equal(b, n, countSteps(NewPlan(wanted, seen)))
			}
		})
	}
}

func BenchmarkNewPlanOfANewCluster(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			wanted, seen := fleetOf(b, n)
			clear(seen.Applied)
			clear(seen.Live)
			clear(seen.Inventory)
			b.ReportAllocs()
			for b.Loop() {
				require.Equal(b, n, countSteps(NewPlan(wanted, seen)))
			}
		})
	}
}

func countSteps(plan Plan) int {
	n := 0
	for _, addOn := range plan.AddOns {
		for _, steps := range addOn.Steps {
			n += len(steps)
		}
	}
	return n
}

func BenchmarkSnapshotOfTheView(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			_, seen := fleetOf(b, n)
			v := newView(func() {})
			v.add(schema.GroupKind{Kind: "ConfigMap"})
			for id, live := range seen.Live {
				v.observe(id, *live)
			}
			b.ReportAllocs()
			for b.Loop() {
				v.snapshot()
			}
		})
	}
}

func BenchmarkLiveOfADeployment(b *testing.B) {
	u := deployment()
	b.ReportAllocs()
	for b.Loop() {
		require.True(b, liveOf(u).Owned())
	}
}

// deployment is as a watch delivers it: rolled out, with the entries of two
// managers.
func deployment() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "812", "generation": int64(2),
			"creationTimestamp": "2026-01-01T00:00:00Z",
			"labels":            map[string]any{AddOnLabel: "shop", "app": "web"},
		},
		"spec": map[string]any{"replicas": int64(2)},
		"status": map[string]any{
			"observedGeneration": int64(2), "replicas": int64(2), "updatedReplicas": int64(2), "readyReplicas": int64(2), "availableReplicas": int64(2),
			"conditions": []any{
				map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
				map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
			},
		},
	}}
	u.SetManagedFields([]metav1.ManagedFieldsEntry{
		fieldsEntry("kube-controller-manager", metav1.ManagedFieldsOperationUpdate, "status", `{"f:status":{"f:replicas":{}}}`),
		fieldsEntry(Manager, metav1.ManagedFieldsOperationApply, "", `{"f:metadata":{"f:labels":{"f:app":{},"f:fleetling.dev/addon":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}},"f:resources":{"f:limits":{"f:cpu":{},"f:memory":{}}}}}}}}}`),
	})
	return u
}

func fieldsEntry(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, Subresource: subresource,
		APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}
