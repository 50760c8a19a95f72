package mcs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// fieldManager owns every field that this package sets.
	fieldManager = "fleetling-clusterset"
	// appliedAnnotation holds a hash of what was applied last: it tells of a field
	// that is not wanted any more, which the object alone does not.
	appliedAnnotation = "fleetling.dev/applied"
)

// put applies an object where it differs from the live one, and says whether it
// has: then the object is what the API server answered.
func (i *Importer) put(ctx context.Context, object, live client.Object) (bool, error) {
	content, err := contentOf(object)
	if err != nil {
		return false, err
	}
	options := []client.ApplyOption{client.FieldOwner(fieldManager)}
	if live.GetResourceVersion() != "" {
		if !ours(live) {
			return false, fmt.Errorf("%s: %w", describe(live), errNotOurs)
		}
		same, err := holds(live, content)
		if err != nil || same {
			return false, err
		}
		// The UID makes it this incarnation or none. What is not there yet is applied
		// without force: if somebody else was faster, it is a conflict.
		setUID(content, live.GetUID())
		options = append(options, client.ForceOwnership)
	}
	answer := &unstructured.Unstructured{Object: content}
	if err := i.config.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(answer), options...); err != nil {
		return false, fmt.Errorf("apply %s: %w", describe(object), err)
	}
	return true, runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, object)
}

// putStatus applies the status of an object that exists.
func (i *Importer) putStatus(ctx context.Context, object client.Object, uid types.UID) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("encode %s: %w", describe(object), err)
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	delete(content, "spec")
	setUID(content, uid)
	err = i.config.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content}),
		client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply status of %s: %w", describe(object), err)
	}
	return nil
}

// remove deletes what this package has made, and only the incarnation seen.
func (i *Importer) remove(ctx context.Context, live client.Object) error {
	if live.GetResourceVersion() == "" || !ours(live) || !live.GetDeletionTimestamp().IsZero() {
		return nil
	}
	var options []client.DeleteOption
	if uid := live.GetUID(); uid != "" {
		options = append(options, client.Preconditions{UID: &uid})
	}
	if err := i.config.Client.Delete(ctx, live, options...); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", describe(live), err)
	}
	return nil
}

// contentOf is an object as it is applied: without status, and with its hash.
func contentOf(object client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", describe(object), err)
	}
	delete(content, "status")
	maps.DeleteFunc(content, func(_ string, value any) bool { return value == nil })
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	data, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", describe(object), err)
	}
	return content, unstructured.SetNestedField(content, hash(string(data))[:20], "metadata", "annotations", appliedAnnotation)
}

// holds is that live has all of content, whatever else others or the API server
// have put there.
func holds(live client.Object, content map[string]any) (bool, error) {
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, fmt.Errorf("encode %s: %w", describe(live), err)
	}
	for key, value := range content {
		// A typed object from a cache has neither.
		if key != "apiVersion" && key != "kind" && !within(value, have[key]) {
			return false, nil
		}
	}
	return true, nil
}

// within is that have has all of want. Lists must be of one length, in any order:
// the API server may order a list that has keys.
func within(want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, _ := have.(map[string]any)
		for key, value := range want {
			if !within(value, have[key]) {
				return false
			}
		}
		return true
	case []any:
		have, _ := have.([]any)
		if len(want) != len(have) {
			return false
		}
		for i, value := range want {
			if !within(value, have[i]) && !slices.ContainsFunc(have, func(h any) bool { return within(value, h) }) {
				return false
			}
		}
		return true
	default:
		return want == have
	}
}

func setUID(content map[string]any, uid types.UID) {
	if metadata, ok := content["metadata"].(map[string]any); ok && uid != "" {
		metadata["uid"] = string(uid)
	}
}

func nameOf(object client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// describe names an object; a typed one from a cache does not know its kind.
func describe(object client.Object) string {
	kind := fmt.Sprintf("%T", object)
	return fmt.Sprintf("%s %s", kind[strings.LastIndex(kind, ".")+1:], client.ObjectKeyFromObject(object))
}
