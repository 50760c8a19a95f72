package agent

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
)

// bell wakes a loop. Ringing never blocks, and many rings before the loop is
// awake are one.
type bell struct{ rung chan struct{} }

func newBell() bell { return bell{make(chan struct{}, 1)} }

func (b bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// settle is how long a loop waits after a ring for more of them: a controller
// that creates ten objects is one pass, not ten.
const settle = 50 * time.Millisecond

// loopRequest is the one request of a loop.
func loopRequest() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: v1alpha1.Self}}
}

// addLoop runs a reconciler of one thing, once at the start, and when the bell
// rings or the other source says so. It needs to lead.
func addLoop(mgr manager.Manager, name string, r reconcile.Reconciler, wake bell, other source.Source) error {
	c, err := controller.New(name, mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: 1,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute),
	})
	if err != nil {
		return fmt.Errorf("set up the %s loop: %w", name, err)
	}
	if err := c.Watch(bellSource(wake)); err != nil {
		return fmt.Errorf("set up the %s loop: %w", name, err)
	}
	if other == nil {
		return nil
	}
	if err := c.Watch(other); err != nil {
		return fmt.Errorf("set up the %s loop: %w", name, err)
	}
	return nil
}

func bellSource(wake bell) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(loopRequest())
		go func() { // ends with the controller, which owns ctx
			for {
				select {
				case <-ctx.Done():
					return
				case <-wake.rung:
					queue.AddAfter(loopRequest(), settle)
				}
			}
		}()
		return nil
	})
}

// onReconcileAt watches Member for a changed annotation reconcile-at.
func onReconcileAt(c cache.Cache) source.Source {
	asks := predicate.TypedFuncs[*v1alpha1.Member]{
		CreateFunc: func(event.TypedCreateEvent[*v1alpha1.Member]) bool { return false },
		DeleteFunc: func(event.TypedDeleteEvent[*v1alpha1.Member]) bool { return true },
		UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.Member]) bool {
			return e.ObjectOld.Annotations[v1alpha1.ReconcileAtAnnotation] != e.ObjectNew.Annotations[v1alpha1.ReconcileAtAnnotation]
		},
	}
	return source.Kind(c, &v1alpha1.Member{}, handler.TypedEnqueueRequestsFromMapFunc(
		func(context.Context, *v1alpha1.Member) []reconcile.Request { return []reconcile.Request{loopRequest()} }), asks)
}

// onPause watches Member for a changed spec.
func onPause(c cache.Cache) source.Source {
	asks := predicate.TypedFuncs[*v1alpha1.Member]{
		UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.Member]) bool {
			return e.ObjectOld.Generation != e.ObjectNew.Generation
		},
	}
	return source.Kind(c, &v1alpha1.Member{}, handler.TypedEnqueueRequestsFromMapFunc(
		func(context.Context, *v1alpha1.Member) []reconcile.Request { return []reconcile.Request{loopRequest()} }), asks)
}

// onPinDeleted calls back when somebody deletes the pin: an administrator wants
// the agent to be introduced again.
func onPinDeleted(ctx context.Context, c cache.Cache, deleted func()) error {
	informer, err := c.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch the pin: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { deleted() }})
	return err
}
