package render

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/api/krusty"

	"github.com/fleetling/fleetling/sources"
)

// TestRenderNeverAsksTheNetwork is G17. Where kustomize by itself does ask, the
// same tree is first built by it, so that the count could be other than zero.
func TestRenderNeverAsksTheNetwork(t *testing.T) {
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: web}\ndata: {k: v}\n"
	var hits atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		_, err := w.Write([]byte(configMap))
		assert.NoError(t, err)
	}))
	t.Cleanup(server.Close)
	cases := map[string]struct {
		kustomization string
		asks          bool
	}{
		"a resource":                  {"resources: [URL/a.yaml]\n", true},
		"a resource as a host":        {"resources: [a.yaml, 'HTTP:URL']\n", false},
		"a file of a ConfigMap":       {"configMapGenerator: [{name: c, files: [f=URL/x]}]\n", true},
		"an env file of a ConfigMap":  {"configMapGenerator: [{name: c, envs: [URL/x]}]\n", true},
		"a file of a Secret":          {"secretGenerator: [{name: c, files: [URL/x]}]\n", true},
		"a patch":                     {"resources: [a.yaml]\npatches: [{path: URL/p}]\n", true},
		"a strategic merge patch":     {"resources: [a.yaml]\npatchesStrategicMerge: [URL/p]\n", true},
		"a JSON patch":                {"resources: [a.yaml]\npatchesJson6902: [{path: URL/p, target: {version: v1, kind: ConfigMap, name: a}}]\n", true},
		"a replacement":               {"resources: [a.yaml]\nreplacements: [{path: URL/r}]\n", true},
		"openapi":                     {"resources: [a.yaml]\nopenapi: {path: URL/o}\n", true},
		"openapi by a merge key":      {"resources: [a.yaml]\n<<: {OpenAPI: {path: URL/o}}\n", true},
		"a patch that looks inline":   {"resources: [a.yaml]\npatchesStrategicMerge: ['URL/p: x']\n", true},
		"a list of built-in plugins":  {"resources: [a.yaml]\ntransformers:\n- |-\n  {apiVersion: builtin, kind: AnyList, items: [{apiVersion: builtin, kind: PatchTransformer, metadata: {name: p}, path: URL/p}]}\n", true},
		"crds":                        {"resources: [a.yaml]\ncrds: [URL/c]\n", true},
		"configurations":              {"resources: [a.yaml]\nconfigurations: [URL/c]\n", true},
		"a component":                 {"resources: [a.yaml]\ncomponents: [URL/org/repo]\n", false},
		"a base":                      {"bases: [URL/org/repo]\n", false},
		"a generator":                 {"generators: [URL/g]\n", true},
		"a transformer":               {"resources: [a.yaml]\ntransformers: [URL/t]\n", true},
		"a validator":                 {"resources: [a.yaml]\nvalidators: [URL/v]\n", true},
		"a file of a built-in plugin": {"resources: [a.yaml]\ntransformers:\n- |-\n  {apiVersion: builtin, kind: PatchTransformer, metadata: {name: p}, PATH: URL/p}\n", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{
				"web/kustomization.yaml": {Data: []byte(strings.ReplaceAll(c.kustomization, "URL", server.URL))},
				"web/a.yaml":             {Data: []byte(configMap)},
			}
			if c.asks {
				hits.Store(0)
				_, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(onDisk(t, fsys), "/web")
				t.Log("kustomize alone:", err)
				require.Positive(t, hits.Load(), "kustomize alone asks")
			}
			hits.Store(0)
			_, err := New(sources.DefaultLimits()).Render(fsys, Request{AddOn: "web", Path: "web"})
			require.Error(t, err)
			assert.Equal(t, sources.RenderFailed, sources.ReasonOf(err))
			assert.NotContains(t, err.Error(), server.URL)
			assert.Zero(t, hits.Load())
		})
	}
}
