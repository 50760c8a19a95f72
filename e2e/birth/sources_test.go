package birth

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWebhooksAreReachedByURL(t *testing.T) {
	config := t.TempDir()
	put := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(config, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(config, path), []byte(text), 0o600))
	}
	put("crd/bases/a.yaml", "---\nkind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\nspec: {group: g}\n---\n")
	put("crd/kustomization.yaml", "labels:\n- pairs: {cluster.x-k8s.io/v1beta2: v1beta2}\n")
	put("webhook/manifests.yaml", "kind: MutatingWebhookConfiguration\napiVersion: admissionregistration.k8s.io/v1\nwebhooks:\n"+
		"- {name: a, clientConfig: {service: {name: s, namespace: n, path: /mutate-a}}}\n")
	h := hook{url: "https://127.0.0.1:1", authority: []byte("pem")}

	definitions, err := h.definitions(config)
	require.NoError(t, err)
	require.Len(t, definitions, 1)
	assert.Equal(t, map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"}, definitions[0].GetLabels())
	want := map[string]any{"url": "https://127.0.0.1:1/convert", "caBundle": "cGVt"}
	got, _, err := unstructured.NestedMap(definitions[0].Object, "spec", "conversion", "webhook", "clientConfig")
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(want, got))

	configurations, err := h.configurations(config)
	require.NoError(t, err)
	require.Len(t, configurations, 1)
	hooks, _, err := unstructured.NestedSlice(configurations[0].Object, "webhooks")
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff([]any{map[string]any{
		"name": "a", "clientConfig": map[string]any{"url": "https://127.0.0.1:1/mutate-a", "caBundle": "cGVt"},
	}}, hooks))
}

func TestSourcesThatAreNotThereAreAnError(t *testing.T) {
	_, err := (hook{}).definitions(t.TempDir())
	require.ErrorContains(t, err, "no objects there")
	_, err = (hook{}).configurations(t.TempDir())
	require.ErrorContains(t, err, "no objects there")
}

func TestOnlyWhatIsThereAndNotUnderWayIsApplied(t *testing.T) {
	binding := func(resources ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"bindings": []any{map[string]any{"resources": resources}}}}}
	}
	applied, err := appliedIn(binding(map[string]any{"name": "a", "applied": true}, map[string]any{"name": "b", "applied": true}))
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, applied)
	_, err = appliedIn(binding(map[string]any{"name": "a", "applied": false}))
	require.ErrorContains(t, err, "a is not applied")
	applied, err = appliedIn(binding())
	require.NoError(t, err)
	assert.Empty(t, applied)
}

func TestAVolumeFollowsItsObject(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "v")
	c := content{files: map[string][]byte{"a": []byte("1"), "b": []byte("2")}, mode: 0o440, group: os.Getgid()}
	require.NoError(t, c.write(folder))
	require.NoError(t, os.Mkdir(filepath.Join(folder, "mounted"), 0o755))
	c.files = map[string][]byte{"b": []byte("3")}
	require.NoError(t, c.write(folder))
	assert.NoFileExists(t, filepath.Join(folder, "a"))
	assert.DirExists(t, filepath.Join(folder, "mounted"), "another volume's")
	got, err := os.ReadFile(filepath.Join(folder, "b"))
	require.NoError(t, err)
	assert.Equal(t, "3", string(got))
	info, err := os.Stat(filepath.Join(folder, "b"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o440), info.Mode().Perm())
}
