package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/e2e/world"
)

// content is what people and agents set in the objects of the platform add-on,
// with the UID, by kind and name. What a controller reports is no part of it.
func content(ctx context.Context, m *world.Member) (map[string]string, error) {
	found := map[string]string{}
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "Service"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	} {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(kind)
		err := m.Client.List(ctx, &list, client.InNamespace(web), client.MatchingLabels{"fleetling.dev/addon": platform})
		if err != nil {
			return nil, fmt.Errorf("%s: list %s: %w", m.Name(), kind.Kind, err)
		}
		for _, object := range list.Items {
			text, err := json.Marshal([]any{object.GetUID(), object.GetLabels(), object.Object["spec"], object.Object["data"]})
			if err != nil {
				return nil, err
			}
			found[kind.Kind+"/"+object.GetName()] = string(text)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no object of add-on %s is there", m.Name(), platform)
	}
	return found, nil
}

// differences names what is not the same in both, sorted.
func differences(before, after map[string]string) []string {
	all := maps.Clone(before)
	maps.Copy(all, after)
	maps.DeleteFunc(all, func(name, text string) bool {
		old, was := before[name]
		_, is := after[name]
		return was && is && old == text
	})
	return slices.Sorted(maps.Keys(all))
}
