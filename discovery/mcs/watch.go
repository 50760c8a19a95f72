package mcs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

const (
	// ownerIndex is of EndpointSlices, by whose they are: one of the two prefixes
	// and the name of a Service.
	ownerIndex    = "clusterset-owner"
	localIndex    = "local/"
	importedIndex = "imported/"

	// A failure is tried again soon: others wait for what is exported.
	firstRetry, lastRetry = 100 * time.Millisecond, 5 * time.Second
	workers               = 4
)

// AddToScheme registers the kinds of the MCS API.
func AddToScheme(s *runtime.Scheme) error { return v1beta1.Install(s) }

// CacheOptions are for the manager's cache: all Services and EndpointSlices are
// in it, since any may be exported at any time, but not what nobody asks of them.
func CacheOptions() map[client.Object]cache.ByObject {
	slim := cache.ByObject{Transform: func(object any) (any, error) {
		if o, ok := object.(client.Object); ok {
			o.SetManagedFields(nil)
		}
		if slice, ok := object.(*discoveryv1.EndpointSlice); ok {
			for i := range slice.Endpoints {
				slice.Endpoints[i].NodeName, slice.Endpoints[i].TargetRef = nil, nil
			}
		}
		return object, nil
	}}
	return map[client.Object]cache.ByObject{
		&corev1.Namespace{}: slim, &corev1.Service{}: slim, &discoveryv1.EndpointSlice{}: slim,
		&v1beta1.ServiceExport{}: slim, &v1beta1.ServiceImport{}: slim,
	}
}

// SetupWithManager makes the manager run the Importer while it leads. At the
// start every object of ours is looked at once, so that what was withdrawn in the
// meantime goes, and not before all caches are filled.
func (i *Importer) SetupWithManager(ctx context.Context, mgr manager.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &discoveryv1.EndpointSlice{}, ownerIndex, ownerOf); err != nil {
		return fmt.Errorf("index EndpointSlices: %w", err)
	}
	appears := predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
	err := builder.ControllerManagedBy(mgr).Named("clusterset").
		Watches(&v1beta1.ServiceExport{}, &handler.EnqueueRequestForObject{}).
		Watches(&v1beta1.ServiceImport{}, &handler.EnqueueRequestForObject{}).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(i.ofService)).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(i.ofSlice)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(i.ofNamespace), builder.WithPredicates(appears)).
		WatchesRawSource(source.Func(i.listen)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(i)
	if err != nil {
		return fmt.Errorf("set up the importer: %w", err)
	}
	return nil
}

// Wake has these Services looked at again: a peer's share of them has changed, or
// they have been published. It never blocks.
func (i *Importer) Wake(keys ...types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, key := range keys {
		if i.queue == nil {
			i.early[key] = true
			continue
		}
		i.queue.Add(reconcile.Request{NamespacedName: key})
	}
}

func (i *Importer) listen(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.queue = queue
	for key := range i.early {
		queue.Add(reconcile.Request{NamespacedName: key})
	}
	clear(i.early)
	return nil
}

// ofService leads from a derived Service to the import, and from any other to its
// own name if that is exported.
func (i *Importer) ofService(ctx context.Context, object client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(object)
	if ours(object) {
		key.Name = object.GetLabels()[v1beta1.LabelServiceName]
		return requests(key)
	}
	return i.ifExported(ctx, key)
}

// ofSlice leads likewise from a slice.
func (i *Importer) ofSlice(ctx context.Context, object client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(object)
	if ours(object) {
		key.Name = object.GetLabels()[v1beta1.LabelServiceName]
		return requests(key)
	}
	key.Name = object.GetLabels()[discoveryv1.LabelServiceName]
	return i.ifExported(ctx, key)
}

// ofNamespace leads from a namespace that appears to all that is imported there.
func (i *Importer) ofNamespace(_ context.Context, object client.Object) []reconcile.Request {
	var keys []types.NamespacedName
	for _, name := range i.config.Peers.Names(object.GetName()) {
		keys = append(keys, types.NamespacedName{Namespace: object.GetName(), Name: name})
	}
	return requests(keys...)
}

// ifExported drops most of a cluster's events: an export that comes later has an
// event of its own.
func (i *Importer) ifExported(ctx context.Context, key types.NamespacedName) []reconcile.Request {
	if key.Name == "" {
		return nil
	}
	if there, err := i.get(ctx, key, &v1beta1.ServiceExport{}); err == nil && !there {
		return nil
	}
	return requests(key)
}

// ownerOf is the index of EndpointSlices.
func ownerOf(object client.Object) []string {
	if ours(object) {
		return []string{importedIndex + object.GetLabels()[v1beta1.LabelServiceName]}
	}
	if name := object.GetLabels()[discoveryv1.LabelServiceName]; name != "" {
		return []string{localIndex + name}
	}
	return nil
}

func requests(keys ...types.NamespacedName) []reconcile.Request {
	var all []reconcile.Request
	for _, key := range keys {
		all = append(all, reconcile.Request{NamespacedName: key})
	}
	return all
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
