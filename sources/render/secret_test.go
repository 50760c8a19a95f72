package render

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
)

// TestNoErrorHoldsASecret breaks add-ons around one secret value in every way
// that quotes something.
func TestNoErrorHoldsASecret(t *testing.T) {
	const secret = "hunter2"
	const good = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: web}\nstringData: {k: hunter2}\n"
	cases := map[string]struct{ kustomization, manifest string }{
		"a literal without a key":               {"secretGenerator: [{name: g, literals: [hunter2]}]\n", good},
		"a literal twice":                       {"secretGenerator: [{name: g, literals: [a=hunter2, a=hunter2]}]\n", good},
		"an unknown behavior":                   {"secretGenerator: [{name: g, behavior: merge, literals: [a=hunter2]}]\n", good},
		"an env file with a bare line":          {"secretGenerator: [{name: g, envs: [e.env]}]\n", good},
		"a key twice":                           {"resources: [a.yaml]\n", good + "data: {k: hunter2, k: hunter2}\n"},
		"broken YAML":                           {"resources: [a.yaml]\n", good + " hunter2: [hunter2\n"},
		"a tag":                                 {"resources: [a.yaml]\n", good + "data: {k: !x hunter2}\n"},
		"a wrong type":                          {"resources: [a.yaml]\nnamePrefix: [hunter2]\n", good},
		"a patch that matches nothing":          {"resources: [a.yaml]\npatches:\n- patch: |-\n    {apiVersion: v1, kind: Secret, metadata: {name: gone}, stringData: {k: hunter2}}\n", good},
		"a patch that is none":                  {"resources: [a.yaml]\npatches:\n- patch: 'hunter2'\n", good},
		"a patch of both kinds":                 {"resources: [a.yaml]\npatches:\n- patch: '[{op: add, path: /stringData/hunter2/x, value: hunter2}]'\n  target: {kind: Secret}\n", good},
		"a JSON patch that fails a test":        {"resources: [a.yaml]\npatches:\n- patch: '[{\"op\": \"test\", \"path\": \"/stringData/k\", \"value\": \"hunter2-not\"}]'\n  target: {kind: Secret}\n", good},
		"a JSON patch that is none":             {"resources: [a.yaml]\npatchesJson6902:\n- patch: '{\"op\": \"hunter2\"}'\n  target: {version: v1, kind: Secret, name: s}\n", good},
		"a strategic merge of two types":        {"resources: [a.yaml]\npatches:\n- patch: |-\n    {apiVersion: v1, kind: Secret, metadata: {name: s, namespace: web}, stringData: [hunter2]}\n", good},
		"a replacement past the end":            {"resources: [a.yaml]\nreplacements:\n- source: {kind: Secret, fieldPath: stringData.k, options: {delimiter: '-', index: 9}}\n  targets: [{select: {kind: Secret}, fieldPaths: [metadata.name]}]\n", good},
		"two secrets made one":                  {"resources: [a.yaml]\ntransformers:\n- |-\n  {apiVersion: builtin, kind: NamespaceTransformer, metadata: {name: n, namespace: one}, fieldSpecs: [{path: metadata/namespace, create: true}]}\n", good + "---\n" + "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: other}\nstringData: {k: hunter2}\n"},
		"a plugin with a wrong type":            {"resources: [a.yaml]\ntransformers:\n- |-\n  {apiVersion: builtin, kind: PatchTransformer, metadata: {name: n}, path: {hunter2: hunter2}}\n", good},
		"a plugin with too much":                {"resources: [a.yaml]\ntransformers:\n- |-\n  {apiVersion: builtin, kind: PatchTransformer, metadata: {name: n}, patch: '{a: hunter2}', path: a.yaml}\n", good},
		"a plugin with too much in a component": {"resources: [a.yaml]\ncomponents: [c]\n", good},
		"a URL with a password":                 {"resources: ['https://user:hunter2@example.com/x']\n", good},
		"a path that is a secret, encoded":      {"resources: [a.yaml]\npatches: [{path: 'https://x:hunter2@example.com'}]\n", good},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{
				"web/kustomization.yaml":   content(c.kustomization),
				"web/a.yaml":               content(c.manifest),
				"web/c/kustomization.yaml": content("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ntransformers:\n- |-\n  {apiVersion: builtin, kind: PatchTransformer, metadata: {name: n}, patch: '{a: hunter2}', path: p.yaml}\n"),
				"web/c/p.yaml":             content("a: hunter2\n"),
				"web/e.env":                content("hunter2\nhunter2\nA=hunter2\n"),
			}
			_, err := New(sources.DefaultLimits()).Render(fsys, Request{AddOn: "web", Path: "web"})
			require.Error(t, err)
			t.Log(err)
			assert.NotContains(t, fmt.Sprintf("%+v", err), secret)
		})
	}
}
