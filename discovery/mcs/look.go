package mcs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// scene is all that there is of one Service in this cluster.
type scene struct {
	// namespace is that it exists, and stays.
	namespace bool
	local
	// imported and derived have no resourceVersion where there are none.
	imported *v1beta1.ServiceImport
	derived  *corev1.Service
	// ours are the imported slices.
	ours []discoveryv1.EndpointSlice
}

func (i *Importer) look(ctx context.Context, key types.NamespacedName) (scene, error) {
	seen := scene{imported: &v1beta1.ServiceImport{}, derived: &corev1.Service{}}
	namespace, export := &corev1.Namespace{}, &v1beta1.ServiceExport{}
	there, err := i.get(ctx, types.NamespacedName{Name: key.Namespace}, namespace)
	if err != nil {
		return seen, err
	}
	seen.namespace = there && namespace.DeletionTimestamp.IsZero()
	if there, err = i.get(ctx, key, export); err != nil {
		return seen, err
	}
	if there {
		seen.export = export
		if err := i.lookLocal(ctx, &seen.local); err != nil {
			return seen, err
		}
	}
	if _, err := i.get(ctx, key, seen.imported); err != nil {
		return seen, err
	}
	if _, err := i.get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: derivedName(key.Namespace, key.Name)}, seen.derived); err != nil {
		return seen, err
	}
	seen.ours, err = i.listSlices(ctx, key.Namespace, importedIndex+key.Name)
	return seen, err
}

// lookLocal fills in what belongs to l.export.
func (i *Importer) lookLocal(ctx context.Context, l *local) error {
	service := &corev1.Service{}
	there, err := i.get(ctx, client.ObjectKeyFromObject(l.export), service)
	if err != nil || !there {
		return err
	}
	l.service = service
	l.slices, err = i.listSlices(ctx, l.export.Namespace, localIndex+l.export.Name)
	return err
}

func (i *Importer) listSlices(ctx context.Context, namespace, owner string) ([]discoveryv1.EndpointSlice, error) {
	var list discoveryv1.EndpointSliceList
	if err := i.config.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{ownerIndex: owner}); err != nil {
		return nil, fmt.Errorf("list EndpointSlices: %w", err)
	}
	return list.Items, nil
}

// get says whether there is such an object.
func (i *Importer) get(ctx context.Context, key types.NamespacedName, into client.Object) (bool, error) {
	err := i.config.Client.Get(ctx, key, into)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read %T %s: %w", into, key, err)
	}
	return err == nil, nil
}
