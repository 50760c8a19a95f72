package apply

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func manifestOf(t *testing.T, text string) Manifest {
	t.Helper()
	return Manifest{readYAML(t, text), "dir/file.yaml"}
}

func TestWhatIsSentIsTheManifestAndOurLabel(t *testing.T) {
	m := manifestOf(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: web, labels: {fleetling.dev/addon: liar, app: x}}\ndata: {k: v}\n")
	before := m.DeepCopy()
	objects, failures := Decode("shop", []Manifest{m})
	require.Empty(t, failures)
	require.Len(t, objects, 1)
	var body map[string]any
	require.NoError(t, json.Unmarshal(objects[0].Body, &body))
	want := before.DeepCopy()
	want.SetLabels(map[string]string{AddOnLabel: "shop", "app": "x"})
	assert.Empty(t, cmp.Diff(want.Object, body), "-want +got")
	assert.Empty(t, cmp.Diff(before.Object, m.Object), "the manifest is not touched: -before +after")
	assert.Equal(t, "dir/file.yaml", objects[0].File)
	assert.Equal(t, "ConfigMap/web/a", objects[0].String())
	assert.Len(t, objects[0].Digest, 64)

	again, _ := Decode("shop", []Manifest{m})
	assert.Equal(t, objects[0].Digest, again[0].Digest)
	other, _ := Decode("other", []Manifest{m})
	assert.NotEqual(t, objects[0].Digest, other[0].Digest, "an object that moves is another content")
}

func TestLabelsThatAreNotThereOrNullAreNone(t *testing.T) {
	for _, labels := range []string{"", ", labels: null", ", labels: {}"} {
		objects, failures := Decode("shop", []Manifest{manifestOf(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: web"+labels+"}}")})
		require.Empty(t, failures)
		assert.Contains(t, string(objects[0].Body), `"labels":{"fleetling.dev/addon":"shop"}`)
	}
}

func TestStringDataIsSentAsData(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"alone":                    {"stringData: {k: v}", `{"k":"dg=="}`},
		"over data":                {"data: {k: eA==, l: eA==}, stringData: {k: v}", `{"k":"dg==","l":"eA=="}`},
		"beside null":              {"data: null, stringData: {k: v}", `{"k":"dg=="}`},
		"null itself":              {"data: {k: dg==}, stringData: null", `{"k":"dg=="}`},
		"none":                     {"data: {k: dg==}", `{"k":"dg=="}`},
		"empty":                    {"data: {k: dg==}, stringData: {}", `{"k":"dg=="}`},
		"an empty value":           {"stringData: {k: ''}", `{"k":""}`},
		"a value of several lines": {"stringData: {k: \"a\\nb\\n\"}", `{"k":"YQpiCg=="}`},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			objects, failures := Decode("shop", []Manifest{manifestOf(t, "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: web}, "+test.in+"}")})
			require.Empty(t, failures)
			var body map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(objects[0].Body, &body))
			assert.JSONEq(t, test.want, string(body["data"]))
			assert.NotContains(t, body, "stringData")
		})
	}
	objects, failures := Decode("shop", []Manifest{manifestOf(t, "{apiVersion: example.com/v1, kind: Secret, metadata: {name: a}, stringData: {k: v}}")})
	require.Empty(t, failures)
	assert.Contains(t, string(objects[0].Body), `"stringData":{"k":"v"}`, "another group's Secret is none")
}

func TestWhatDoesNotPassTheEdgeIsAFailureThatSaysWhatToDo(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"no kind":                       {"{apiVersion: v1, metadata: {name: a}}", "kind"},
		"no apiVersion":                 {"{piVersion: v1, kind: Service, metadata: {name: a}}", "apiVersion"},
		"an apiVersion that is none":    {"{apiVersion: a/b/c, kind: Service, metadata: {name: a}}", "apiVersion"},
		"no name":                       {"{apiVersion: v1, kind: Service, metadata: {generateName: a}}", "metadata.name"},
		"a name that YAML made a truth": {"{apiVersion: v1, kind: Service, metadata: {name: n}}", "quote it"},
		"a name with a slash":           {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a/b}}", "metadata.name: may not contain '/'"},
		"a name that is a way up":       {"{apiVersion: v1, kind: ConfigMap, metadata: {name: .., namespace: web}}", "metadata.name: may not be '..'"},
		"a name of two lines":           {"{apiVersion: v1, kind: ConfigMap, metadata: {name: \"a\\nb\"}}", "metadata.name: must be text without control characters"},
		"a name without an end":         {"{apiVersion: v1, kind: ConfigMap, metadata: {name: " + strings.Repeat("a", 254) + "}}", "metadata.name: must be no more than 253"},
		"a namespace that is a way up":  {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ../kube-system}}", "metadata.namespace: "},
		"a label that is no text":       {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {on: 1}}}", "metadata.labels: values must be strings"},
		"labels that are no map":        {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: [x]}}", "metadata.labels: "},
		"stringData that is no text":    {"{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {port: 80}}", "stringData: values must be strings: quote them"},
		"stringData that is no map":     {"{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: hunter2}", "stringData: "},
		"data that is no map":           {"{apiVersion: v1, kind: Secret, metadata: {name: a}, data: hunter2, stringData: {k: hunter2}}", "data: must be a map"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			good := manifestOf(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: good}}")
			objects, failures := Decode("shop", []Manifest{manifestOf(t, test.text), good})
			require.Len(t, objects, 1, "the good one is not held up")
			require.Len(t, failures, 1)
			assert.Equal(t, InvalidObject, failures[0].Reason)
			assert.Contains(t, failures[0].Message, test.want)
			assert.NotContains(t, failures[0].String(), "hunter2")
			assert.True(t, strings.HasPrefix(failures[0].String(), "dir/file.yaml: "))
		})
	}
}

func TestNamesThatSomeKindTakesPass(t *testing.T) {
	for _, name := range []string{"system:node", "a.b.c", "v1beta1.metrics.k8s.io", "Über uns", strings.Repeat("a", 253)} {
		u := configMap("web", name)
		_, failures := Decode("shop", []Manifest{{u, "f"}})
		assert.Empty(t, failures)
	}
}

func TestADefinitionTellsWhatItBrings(t *testing.T) {
	objects, failures := Decode("shop", []Manifest{
		manifestOf(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: w}, spec: {group: example.com, names: {kind: Widget}, scope: Namespaced, versions: [{name: v1, served: true}, {name: v2, served: false}, {name: v3, served: true}]}}"),
		manifestOf(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: w}, spec: {group: example.com, names: {kind: Widget}, scope: Cluster}}"),
		manifestOf(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: w}, spec: x}"),
		manifestOf(t, "{apiVersion: example.com/v1, kind: CustomResourceDefinition, metadata: {name: w}, spec: {group: example.com}}"),
	})
	require.Empty(t, failures)
	widget := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	assert.Equal(t, &Definition{GroupKind: widget, Namespaced: true, Versions: []string{"v1", "v3"}}, objects[0].Defines)
	assert.Equal(t, &Definition{GroupKind: widget}, objects[1].Defines)
	assert.Equal(t, &Definition{}, objects[2].Defines)
	assert.Nil(t, objects[3].Defines)
}

func TestAPolicyTellsWhatItReads(t *testing.T) {
	spec := ", metadata: {name: p}, spec: {paramKind: {apiVersion: example.com/v1, kind: Limit}}}"
	limit := schema.GroupKind{Group: "example.com", Kind: "Limit"}
	cases := map[string]struct {
		text string
		want schema.GroupKind
	}{
		"a validating policy":    {"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy" + spec, limit},
		"a mutating policy":      {"{apiVersion: admissionregistration.k8s.io/v1beta1, kind: MutatingAdmissionPolicy" + spec, limit},
		"of the core group":      {"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy" + strings.ReplaceAll(spec, "example.com/v1, kind: Limit", "v1, kind: ConfigMap"), schema.GroupKind{Kind: "ConfigMap"}},
		"a policy that has none": {"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: p}}", schema.GroupKind{}},
		"a version that is none": {"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy" + strings.ReplaceAll(spec, "example.com/v1", "a/b/c"), schema.GroupKind{}},
		"a binding":              {"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding" + spec, schema.GroupKind{}},
		"another group's policy": {"{apiVersion: example.com/v1, kind: ValidatingAdmissionPolicy" + spec, schema.GroupKind{}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			objects, failures := Decode("shop", []Manifest{manifestOf(t, test.text)})
			require.Empty(t, failures)
			assert.Equal(t, test.want, objects[0].Params)
		})
	}
}
