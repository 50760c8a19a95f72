package capi

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestLint(t *testing.T) {
	runCases(t, "lint", func(t *testing.T, tree fs.FS) string {
		t.Helper()
		files, err := fs.Glob(tree, "*.yaml")
		require.NoError(t, err)
		var all []Object
		for _, file := range files {
			data, err := fs.ReadFile(tree, file)
			require.NoError(t, err)
			objects, err := Read(file, data)
			require.NoError(t, err)
			all = append(all, objects...)
		}
		var out strings.Builder
		for _, finding := range Lint(all) {
			fmt.Fprintln(&out, finding)
		}
		return out.String()
	})
}

// bundleOf sends values by one set.
func bundleOf(strategy string, values map[string]string) []Object {
	data := map[string]any{}
	for key, value := range values {
		data[key] = value
	}
	source := resource("ConfigMap", "default", "x", data)
	return []Object{source, target().set("default", "x", map[string]any{"matchLabels": map[string]any{ClusterLabel: "a"}}, strategy, source)}
}

func configMap(size int) string {
	head := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {x: \""
	return head + strings.Repeat("x", size-len(head)-3) + "\"}}"
}

func TestLintKnowsTheLimitsToTheByte(t *testing.T) {
	small := "{apiVersion: v1, kind: A, metadata: {name: x}}\n"
	for name, c := range map[string]struct {
		values map[string]string
		want   string
	}{
		"31 bytes":           {map[string]string{"a": "{apiVersion: v1, kind: A} #xxxx"}, "31 bytes: below 32 Cluster API fails"},
		"32 bytes":           {map[string]string{"a": "{apiVersion: v1, kind: A, x: yy}"}, ""},
		"just below 900 KiB": {map[string]string{"a": configMap(900<<10 - 1)}, ""},
		"900 KiB":            {map[string]string{"a": configMap(900 << 10)}, "921600 bytes: keep it below"},
		"two halves":         {map[string]string{"00-a": configMap(450 << 10), "10-b": configMap(450 << 10)}, "921600 bytes: keep it below"},
		"two keys":           {map[string]string{"a": small, "b": small}, "keys are applied in alphabetical order"},
		"two ordered keys":   {map[string]string{"00-a": small, "10-b": small}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var found []string
			for _, finding := range Lint(bundleOf(applyOnce, c.values)) {
				if !strings.Contains(finding.Text, "has no name") {
					found = append(found, finding.Text)
				}
			}
			if c.want == "" {
				assert.Empty(t, found)
				return
			}
			require.NotEmpty(t, found)
			assert.Contains(t, found[0], c.want)
		})
	}
}

func TestASetWithTooManyResourcesIsFound(t *testing.T) {
	objects := bundleOf(applyOnce, map[string]string{"a": configMap(200)})
	references := make([]any, maxResources+1)
	for i := range references {
		references[i] = map[string]any{"kind": "ConfigMap", "name": "x"}
	}
	require.NoError(t, unstructured.SetNestedSlice(objects[1].Object, references, "spec", "resources"))
	findings := Lint(objects)
	require.Len(t, findings, 1)
	assert.Contains(t, findings[0].String(), "101 resources: at most 100 are allowed")
}

func TestLintShowsNothingOfASecret(t *testing.T) {
	for _, text := range []string{"hunter2: [hunter2\nhunter2 hunter2 hunter2", "apiVersion: v1\nhunter2: hunter2 hunter2 hunter2\n", "hunter2"} {
		source := resource("Secret", "default", "x", map[string]any{
			"a": base64.StdEncoding.EncodeToString([]byte(text)), "b": "hunter2 is not base64!",
		})
		set := target().set("default", "x", map[string]any{"matchLabels": map[string]any{ClusterLabel: "a"}}, reconcile, source)
		findings := Lint([]Object{source, set})
		require.NotEmpty(t, findings)
		for _, finding := range findings {
			assert.NotContains(t, finding.String(), "hunter2")
		}
	}
}

// Each change to the Deployment that ships is found, so that the component can't
// lose a line unseen.
func TestC3WhatKeepsTheAgentFromBeingBornIsFound(t *testing.T) {
	pod := func(path ...string) []string { return append([]string{"spec", "template", "spec"}, path...) }
	for name, c := range map[string]struct {
		spoil func(o map[string]any)
		want  string
	}{
		"no host network": {func(o map[string]any) { unstructured.RemoveNestedField(o, pod("hostNetwork")...) }, "hostNetwork is off"},
		"cluster DNS":     {func(o map[string]any) { _ = unstructured.SetNestedField(o, "ClusterFirst", pod("dnsPolicy")...) }, `dnsPolicy is "ClusterFirst"`},
		"one toleration less": {func(o map[string]any) {
			tolerations, _, _ := unstructured.NestedSlice(o, pod("tolerations")...)
			_ = unstructured.SetNestedSlice(o, tolerations[1:], pod("tolerations")...)
		}, "does not tolerate node.cluster.x-k8s.io/uninitialized"},
		"a toleration that ends": {func(o map[string]any) {
			tolerations, _, _ := unstructured.NestedSlice(o, pod("tolerations")...)
			tolerations[2].(map[string]any)["tolerationSeconds"] = int64(300)
			_ = unstructured.SetNestedSlice(o, tolerations, pod("tolerations")...)
		}, "does not tolerate node.kubernetes.io/not-ready"},
		"a port": {func(o map[string]any) {
			container(o)["ports"] = []any{map[string]any{"containerPort": int64(8080)}}
		}, "container agent has a fixed port"},
		"a probe by port": {func(o map[string]any) {
			container(o)["livenessProbe"] = map[string]any{"httpGet": map[string]any{"port": int64(8081)}}
		}, "has a probe that needs a port"},
		"not a Deployment": {func(o map[string]any) { o["spec"] = "x" }, "is not a Deployment"},
	} {
		t.Run(name, func(t *testing.T) {
			made := installed(t)
			deployment, err := find(made, "apps", "Deployment", agentName)
			require.NoError(t, err)
			c.spoil(deployment.Object)
			_, err = Bundle(made, []Entry{entryOf("a")}, target())
			require.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, err, "Deployment/fleetling-system/fleetling")
		})
	}
}

func container(o map[string]any) map[string]any {
	spec := o["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	return spec["containers"].([]any)[0].(map[string]any)
}

func TestTheManifestsWithoutTheirComponentAreRefused(t *testing.T) {
	made := installed(t)
	deployment, err := find(made, "apps", "Deployment", agentName)
	require.NoError(t, err)
	for _, field := range []string{"hostNetwork", "dnsPolicy", "tolerations"} {
		unstructured.RemoveNestedField(deployment.Object, "spec", "template", "spec", field)
	}
	_, err = Bundle(made, []Entry{entryOf("a")}, target())
	assert.ErrorContains(t, err, "lay component manifests/birth over it")
	for _, taint := range birthTaints() {
		assert.ErrorContains(t, err, taint)
	}
}
