package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/apply"
)

// statusWriter writes Member and AddOn, each only when something in it has
// changed.
type statusWriter struct {
	// client reads from a cache.
	client  client.Client
	config  Config
	events  eventWriter
	metrics *metrics
	// wrote are the objects as last written: the cache may be a moment behind.
	wrote map[string]statusObject
}

// statusObject is Member, AddOn or Peer.
type statusObject interface {
	client.Object
	StatusConditions() *[]metav1.Condition
}

func (w *statusWriter) write(ctx context.Context, o outcome) error {
	w.metrics.observe(o)
	member := &v1alpha1.Member{TypeMeta: typeMeta("Member"), ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.Self}, Status: o.memberStatus(w.config)}
	changed, err := w.put(ctx, member, &v1alpha1.Member{}, o.now)
	if err != nil {
		return err
	}
	w.events.transitions(member, changed)
	kept := map[string]bool{}
	for _, v := range o.addOns() {
		if !v.report.Selected && v.report.Inventory == 0 {
			continue
		}
		kept[v.name] = true
		addOn := &v1alpha1.AddOn{TypeMeta: typeMeta("AddOn"), ObjectMeta: metav1.ObjectMeta{Name: v.name}, Status: v.addOnStatus()}
		changed, err := w.put(ctx, addOn, &v1alpha1.AddOn{}, o.now)
		if err != nil {
			return err
		}
		w.events.transitions(addOn, changed)
		w.events.changes(addOn, v.report)
	}
	return w.sweep(ctx, kept)
}

// put writes one object's status, where it differs, and gives the conditions that
// changed.
func (w *statusWriter) put(ctx context.Context, next, old statusObject, now time.Time) ([]metav1.Condition, error) {
	key := next.GetObjectKind().GroupVersionKind().Kind + "/" + next.GetName()
	err := w.client.Get(ctx, client.ObjectKeyFromObject(next), old)
	exists := err == nil
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	if last := w.wrote[key]; exists && last != nil {
		old = last
	}
	if was, ok := old.(*v1alpha1.Member); ok {
		if is, ok := next.(*v1alpha1.Member); ok {
			carryBirth(was.Status.Birth, is.Status.Birth)
		}
	}
	changed := carryTimes(*old.StatusConditions(), *next.StatusConditions(), now)
	if exists && sameStatus(old, next) {
		return nil, nil
	}
	if err := w.apply(ctx, next, exists); err != nil {
		return nil, fmt.Errorf("write status of %s: %w", key, err)
	}
	w.wrote[key] = next
	return changed, nil
}

func sameStatus(old, next statusObject) bool {
	bare, ok := old.DeepCopyObject().(statusObject)
	if !ok {
		return false
	}
	bare.GetObjectKind().SetGroupVersionKind(next.GetObjectKind().GroupVersionKind())
	name := bare.GetName()
	switch object := bare.(type) {
	case *v1alpha1.Member:
		object.ObjectMeta, object.Spec = metav1.ObjectMeta{Name: name}, v1alpha1.MemberSpec{}
	case *v1alpha1.AddOn:
		object.ObjectMeta = metav1.ObjectMeta{Name: name}
	case *v1alpha1.Peer:
		object.ObjectMeta = metav1.ObjectMeta{Name: name}
	}
	return equality.Semantic.DeepEqual(bare, next)
}

// carryTimes gives each condition the time of its last change of status, and
// returns those whose status or reason changed.
func carryTimes(old, next []metav1.Condition, now time.Time) []metav1.Condition {
	var changed []metav1.Condition
	for i := range next {
		next[i].LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		j := slices.IndexFunc(old, func(c metav1.Condition) bool { return c.Type == next[i].Type })
		if j >= 0 && old[j].Status == next[i].Status {
			next[i].LastTransitionTime = old[j].LastTransitionTime
		}
		if j < 0 || old[j].Status != next[i].Status || old[j].Reason != next[i].Reason {
			changed = append(changed, next[i])
		}
	}
	return changed
}

// apply is one server-side apply of the status, after one of the object where
// it is not there yet.
func (w *statusWriter) apply(ctx context.Context, object statusObject, exists bool) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	status := content["status"]
	delete(content, "spec") // is other people's
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	if !exists {
		delete(content, "status")
		err := w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}),
			client.ForceOwnership, client.FieldOwner(apply.Manager))
		if err != nil {
			return err
		}
	}
	content["status"] = status
	return w.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content}),
		client.ForceOwnership, client.FieldOwner(apply.Manager))
}

// sweep deletes the AddOns that have nothing to say any more.
func (w *statusWriter) sweep(ctx context.Context, kept map[string]bool) error {
	var list v1alpha1.AddOnList
	if err := w.client.List(ctx, &list); err != nil {
		return fmt.Errorf("list AddOns: %w", err)
	}
	for i := range list.Items {
		addOn := &list.Items[i]
		if kept[addOn.Name] {
			continue
		}
		if err := w.client.Delete(ctx, addOn); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete AddOn %s: %w", addOn.Name, err)
		}
		delete(w.wrote, "AddOn/"+addOn.Name)
	}
	return nil
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.Group + "/" + v1alpha1.Version, Kind: kind}
}
