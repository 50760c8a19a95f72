package agent

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
)

// identityWatch follows the ConfigMap of the identity.
type identityWatch struct {
	informer toolscache.SharedInformer
}

func newIdentityWatch(clientset kubernetes.Interface, changed func()) (*identityWatch, error) {
	client := clientset.CoreV1().ConfigMaps(Namespace)
	only := fields.OneTermEqualSelector("metadata.name", identityName).String()
	informer := toolscache.NewSharedInformer(toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return client.Watch(ctx, options)
		},
	}, clientset), &corev1.ConfigMap{}, 0)
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
	return &identityWatch{informer}, err
}

// Start follows until ctx ends.
func (w *identityWatch) Start(ctx context.Context) error {
	w.informer.RunWithContext(ctx)
	return nil
}

// NeedLeaderElection says that an agent in waiting follows, too.
func (*identityWatch) NeedLeaderElection() bool { return false }

// read gives nil while the API server has shown none.
func (w *identityWatch) read() *corev1.ConfigMap {
	for _, object := range w.informer.GetStore().List() {
		if cm, ok := object.(*corev1.ConfigMap); ok && cm.Name == identityName {
			return cm
		}
	}
	return nil
}
