package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetling/fleetling/e2e/world"
	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/fleet"
	"github.com/fleetling/fleetling/sources/render"
)

// bundle is an add-on of the example, rendered for one cluster.
type bundle struct {
	path, digest string
	objects      []render.Object
}

func TestExampleGivesEachClusterItsOwn(t *testing.T) {
	tree := world.Example(t)
	south, west := bundles(t, tree, sites()[0]), bundles(t, tree, sites()[1])

	assert.Equal(t, "addons/overlays/ap-south", south[platform].path)
	assert.Equal(t, "addons/overlays/eu-west", west[platform].path)
	for name := range south {
		if name == platform {
			assert.NotEqual(t, south[name].digest, west[name].digest, name)
		} else {
			assert.Equal(t, south[name].digest, west[name].digest, name)
		}
	}
	assert.Equal(t, []string{"ConfigMap", "Deployment", "Namespace", "Service"}, kinds(south[platform]))
	assert.Equal(t, []string{"ConfigMap", "Deployment", "Namespace", "PodDisruptionBudget", "Service"}, kinds(west[platform]))
	for name, b := range map[string]bundle{"prod-ap-south": south[platform], "prod-eu-west": west[platform]} {
		want := map[string]any{"CLUSTER": name, "REGION": strings.TrimPrefix(name, "prod-"), setting: greeting}
		data, _, err := unstructured.NestedMap(one(t, b, "ConfigMap").Object, "data")
		require.NoError(t, err)
		delete(data, "LANGUAGE")
		assert.Empty(t, cmp.Diff(want, data), "-want +got")
	}
	assert.Equal(t, "registry.example.com/web:1.28.0-rc.1", image(t, south[platform]), "its tier is canary")
	assert.Equal(t, "registry.example.com/web:1.27.0", image(t, west[platform]))
}

// The policies exempt these by name, so a wrong one would lock out the agent or
// the cluster's own Pods.
func TestExamplesPoliciesExemptWhatHasToRun(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range bundles(t, world.Example(t), sites()[0])["policies"].objects {
		if o.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		seen[o.GetName()] = true
		expressions, _, err := unstructured.NestedSlice(o.Object, "spec", "matchConstraints", "namespaceSelector", "matchExpressions")
		require.NoError(t, err)
		want := []any{map[string]any{
			"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []any{world.Namespace, "kube-system"},
		}}
		assert.Empty(t, cmp.Diff(want, expressions), "%s: -want +got", o.GetName())
	}
	assert.Len(t, seen, 2)
	for _, bad := range badPods() {
		assert.True(t, seen[bad.policy], "%s: the demo shows a Pod that it refuses", bad.policy)
	}
}

func TestExampleHoldsNoSecret(t *testing.T) {
	for _, s := range sites() {
		for name, b := range bundles(t, world.Example(t), s) {
			assert.NotContains(t, kinds(b), "Secret", name)
		}
	}
}

func TestEntryOfTheExampleWithALabelOffItsListIsRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, world.Example(t)))
	entry := filepath.Join(dir, "clusters", "prod-eu-west.yaml")
	content, err := os.ReadFile(entry)
	require.NoError(t, err)
	changed := strings.Replace(string(content), "region: eu-west", "region: eu-wset", 1)
	require.NotEqual(t, string(content), changed)
	require.NoError(t, os.WriteFile(entry, []byte(changed), 0o644))

	tree := os.DirFS(dir)
	f, err := fleet.Read(tree)
	require.NoError(t, err)
	south, west := sites()[0], sites()[1]
	_, err = f.Select(tree, west.identity(), true)
	assert.Equal(t, sources.InvalidLabelValue, sources.ReasonOf(err))
	assert.ErrorContains(t, err, "clusters/prod-eu-west.yaml:5: ")
	assert.ErrorContains(t, err, `"eu-wset": its values (fleetling.yaml:`)
	_, err = f.Select(tree, south.identity(), true)
	assert.NoError(t, err, "another cluster's entry is no concern of it")
}

func (s site) identity() fleet.Identity {
	return fleet.Identity{Name: s.name, ClusterSet: "prod", Labels: s.labels()}
}

// bundles selects and renders the example for a cluster, by add-on.
func bundles(t *testing.T, tree fs.FS, s site) map[string]bundle {
	t.Helper()
	f, err := fleet.Read(tree)
	require.NoError(t, err)
	entry, listed := f.Cluster(s.name)
	require.True(t, listed, s.name)
	require.Len(t, entry.PodCIDRs, 1)
	assert.Equal(t, exampleRange(s.name), entry.PodCIDRs[0].String())
	selection, err := f.Select(tree, s.identity(), true)
	require.NoError(t, err)
	assert.Empty(t, selection.Differs)

	all, names := map[string]bundle{}, []string{}
	renderer := render.New(sources.DefaultLimits())
	for _, a := range selection.AddOns {
		result, err := renderer.Render(tree, render.Request{AddOn: a.Name, Path: a.Path, Components: a.Components, Substitute: a.Substitute})
		require.NoError(t, err)
		assert.Empty(t, result.Warnings, a.Name)
		all[a.Name], names = bundle{a.Path, result.Digest, result.Objects}, append(names, a.Name)
	}
	assert.Equal(t, []string{"policies", "rbac", "clusterset-dns", "backups", platform, "tenants"}, names)
	return all
}

// kinds gives the kinds of a bundle's objects, sorted.
func kinds(b bundle) []string {
	var all []string
	for _, o := range b.objects {
		all = append(all, o.GetKind())
	}
	slices.Sort(all)
	return all
}

func one(t *testing.T, b bundle, kind string) render.Object {
	t.Helper()
	at := slices.IndexFunc(b.objects, func(o render.Object) bool { return o.GetKind() == kind })
	require.GreaterOrEqual(t, at, 0, kind)
	return b.objects[at]
}

func image(t *testing.T, b bundle) string {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(one(t, b, "Deployment").Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	require.Len(t, containers, 1)
	name, _, err := unstructured.NestedString(containers[0].(map[string]any), "image")
	require.NoError(t, err)
	return name
}
