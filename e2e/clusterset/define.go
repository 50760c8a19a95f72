package clusterset

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/harness"
)

// definitions gives the files of manifests/ that hold the MCS API's kinds.
func definitions() ([]string, error) {
	root, err := build.Root()
	if err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(root, "manifests", "crds", "multicluster.x-k8s.io_*.yaml"))
}

// define applies CustomResourceDefinitions, one to a file, and waits until they are served.
func define(ctx context.Context, config *rest.Config, files []string) error {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &object.Object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("install"), client.ForceOwnership); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := harness.Eventually(ctx, func(ctx context.Context) error { return established(ctx, c, object) }); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func established(ctx context.Context, c client.Client, definition *unstructured.Unstructured) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, condition := range conditions {
		if values, ok := condition.(map[string]any); ok && values["type"] == "Established" && values["status"] == "True" {
			return nil
		}
	}
	return fmt.Errorf("%s is not established", definition.GetName())
}
