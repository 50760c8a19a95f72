package apply

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// watcher keeps one watch per kind, for the objects with our label.
type watcher struct {
	client dynamic.Interface
	view   *view
	// lifetime bounds all watches: they outlive the pass that starts them.
	lifetime context.Context //nolint:containedctx // watches belong to the engine's life, not to a call

	running map[schema.GroupKind]runningWatch
	wait    sync.WaitGroup
}

type runningWatch struct {
	resource Resource
	stop     context.CancelFunc
}

// ensure starts the watches of the kinds that are wanted and not watched yet,
// and ends those that are not wanted any more or served otherwise by now.
func (w *watcher) ensure(wanted map[schema.GroupKind]Resource) {
	for gk, r := range w.running {
		if wanted[gk] != r.resource {
			r.stop()
			delete(w.running, gk)
			w.view.drop(gk)
		}
	}
	for gk, resource := range wanted {
		if _, ok := w.running[gk]; !ok {
			w.start(gk, resource)
		}
	}
}

func (w *watcher) start(gk schema.GroupKind, resource Resource) {
	ctx, stop := context.WithCancel(w.lifetime)
	w.running[gk] = runningWatch{resource: resource, stop: stop}
	expected := &unstructured.Unstructured{}
	expected.SetGroupVersionKind(resource.GroupVersion().WithKind(resource.Kind))
	reflector := cache.NewReflectorWithOptions(
		w.listWatch(resource), expected, w.view.add(gk),
		cache.ReflectorOptions{Name: gk.String(), TypeDescription: gk.String()})
	w.wait.Go(func() { reflector.RunWithContext(ctx) })
}

func (w *watcher) listWatch(resource Resource) cache.ListerWatcher {
	client := w.client.Resource(resource.GroupVersionResource)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = AddOnLabel
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = AddOnLabel
			return client.Watch(ctx, options)
		},
	}, w.client)
}

// close ends all watches and waits for them.
func (w *watcher) close() {
	for gk, r := range w.running {
		r.stop()
		delete(w.running, gk)
	}
	w.wait.Wait()
}
