package world

import (
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/harness"
)

// install applies manifests/ as `kubectl apply -k` would. The Deployment stays
// without a Pod where there is no node; the agent runs as a process beside it.
func install(ctx context.Context, c client.Client) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "manifests"))
	if err != nil {
		return fmt.Errorf("render manifests: %w", err)
	}
	for _, r := range rendered.Resources() {
		content, err := r.MarshalJSON()
		if err != nil {
			return fmt.Errorf("render manifests: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			return fmt.Errorf("render manifests: %w", err)
		}
		if object.GetKind() == "Deployment" {
			// Its Pods would run no container here, and hold nothing.
			if err := unstructured.SetNestedField(object.Object, int64(0), "spec", "replicas"); err != nil {
				return err
			}
		}
		err = harness.Eventually(ctx, func(ctx context.Context) error {
			return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("install"), client.ForceOwnership)
		})
		if err != nil {
			return fmt.Errorf("install %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
