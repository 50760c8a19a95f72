package render

import (
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/fleetling/fleetling/sources"
)

// victim is V of F12: a patch that needs the schema of a StatefulSet to merge
// its containers by name.
func victim() fstest.MapFS {
	return fstest.MapFS{
		"web/kustomization.yaml": content("resources: [s.yaml]\npatches: [{path: p.yaml}]\n"),
		"web/s.yaml":             content("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s, namespace: web}\nspec: {template: {spec: {containers: [{name: c, image: nginx}]}}}\n"),
		"web/p.yaml":             content("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s, namespace: web}\nspec: {template: {spec: {containers: [{name: c, env: [{name: E, value: '1'}]}]}}}\n"),
	}
}

// TestNoBuildChangesTheSchemaOfAnother is F12: V before and after P, with a
// Renderer of its own each time, so that no cache answers.
func TestNoBuildChangesTheSchemaOfAnother(t *testing.T) {
	poison := fstest.MapFS{
		"web/kustomization.yaml": content("resources: [s.yaml]\nopenapi: {path: crd-only.json}\n"),
		"web/crd-only.json":      content(`{"definitions": {"v1.Only": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "example.com", "kind": "Only", "version": "v1"}]}}}`),
		"web/s.yaml":             victim()["web/s.yaml"],
	}
	req := Request{AddOn: "web", Path: "web"}
	before, err := New(sources.DefaultLimits()).Render(victim(), req)
	require.NoError(t, err)
	_, err = New(sources.DefaultLimits()).Render(poison, req)
	require.ErrorContains(t, err, "openapi is refused")
	// What kustomize itself would leave behind.
	_, err = krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(onDisk(t, poison), "/web")
	require.NoError(t, err)
	require.NotEqual(t, openapi.DefaultOpenAPI, openapi.GetSchemaVersion())
	after, err := New(sources.DefaultLimits()).Render(victim(), req)
	require.NoError(t, err)
	assert.Equal(t, before.Digest, after.Digest)
	assert.Equal(t, openapi.DefaultOpenAPI, openapi.GetSchemaVersion())
	spec := after.Objects[0].Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	container := spec["containers"].([]any)[0].(map[string]any)
	assert.Equal(t, "nginx", container["image"], "merged by name, not replaced")
	assert.Len(t, container["env"], 1)
}

// TestTheSchemaIsLoadedOnce measures a build that needs the schema: loading it
// takes 45 MiB.
func TestTheSchemaIsLoadedOnce(t *testing.T) {
	warm(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := New(sources.DefaultLimits()).Render(victim(), Request{AddOn: "web", Path: "web"})
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
}
