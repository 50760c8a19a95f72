package capi

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/fleet"
	"github.com/fleetling/fleetling/sources/render"
)

// TestBundle has a small agent in place of the manifests, so that a case can be
// read whole.
func TestBundle(t *testing.T) {
	agent, err := Read("agent.yaml", []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: fleetling-system}\n"))
	require.NoError(t, err)
	runCases(t, "bundle", func(t *testing.T, tree fs.FS) string {
		t.Helper()
		entries, leftOut, clusterSet, err := chosen(t, tree)
		if err != nil {
			return err.Error() + "\n"
		}
		version := "v1beta2"
		if _, err := fs.Stat(tree, "v1beta1"); err == nil {
			version = "v1beta1"
		}
		made, err := Bundle(agent, entries, Target{APIVersion: version, Namespace: "default", ClusterSet: clusterSet})
		if err != nil {
			return err.Error() + "\n"
		}
		text, err := Text(made)
		require.NoError(t, err)
		for _, name := range leftOut {
			text = append(text, "# left out: "+name+"\n"...)
		}
		return string(text)
	})
}

func entryOf(name string) Entry {
	return Entry{
		Cluster:  fleet.Cluster{Name: name, File: "clusters/" + name + ".yaml", Labels: map[string]string{"region": "ap-south", "fleet": "true"}},
		Labelled: name,
	}
}

func target() Target { return Target{APIVersion: "v1beta2", Namespace: "default", ClusterSet: "prod"} }

// sentBy gives what the bundle's sets with a strategy send to a cluster.
func sentBy(t *testing.T, strategy string) []Object {
	t.Helper()
	bundle, err := Bundle(installed(t), []Entry{entryOf("a")}, target())
	require.NoError(t, err)
	var sent []Object
	for _, set := range bundle {
		if how, _, _ := unstructured.NestedString(set.Object, "spec", "strategy"); how != strategy {
			continue
		}
		for _, source := range bundle {
			if source.GetKind() != "ConfigMap" || source.GetName() != set.GetName() {
				continue
			}
			data, _, err := unstructured.NestedStringMap(source.Object, "data")
			require.NoError(t, err)
			for _, text := range data {
				objects, err := Read("", []byte(text))
				require.NoError(t, err)
				sent = append(sent, objects...)
			}
		}
	}
	require.NotEmpty(t, sent)
	return sent
}

func TestC1TheRenderedBundleHasNoService(t *testing.T) {
	var kinds []string
	for _, o := range append(sentBy(t, applyOnce), sentBy(t, reconcile)...) {
		kinds = append(kinds, o.GetKind())
		assert.NotContains(t, []string{"Service", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "PersistentVolumeClaim", "APIService"}, o.GetKind())
	}
	assert.Equal(t, "Namespace", kinds[0], "the namespace comes first")
	assert.Contains(t, kinds, "Deployment")
	assert.Contains(t, kinds, "CustomResourceDefinition")
}

func TestC1AnOverlayWithAServiceIsRefused(t *testing.T) {
	service, err := Read("overlay.yaml", []byte("apiVersion: v1\nkind: Service\nmetadata: {name: metrics, namespace: fleetling-system}\n"))
	require.NoError(t, err)
	_, err = Bundle(append(installed(t), service...), []Entry{entryOf("a")}, target())
	assert.ErrorContains(t, err, "Service/fleetling-system/metrics: the first Service of a cluster may take the address of default/kubernetes")
}

func TestC3TheRenderedPodRunsBeforeThereIsANetwork(t *testing.T) {
	var deployment appsv1.Deployment
	for _, o := range sentBy(t, applyOnce) {
		if o.GetKind() == "Deployment" {
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &deployment))
		}
	}
	pod := deployment.Spec.Template.Spec
	require.Len(t, pod.Containers, 1)
	assert.True(t, pod.HostNetwork)
	assert.Equal(t, corev1.DNSDefault, pod.DNSPolicy)
	want := []corev1.Toleration{
		{Key: "node.cluster.x-k8s.io/uninitialized", Operator: "Exists"},
		{Key: "node.cloudprovider.kubernetes.io/uninitialized", Operator: "Exists"},
		{Key: "node.kubernetes.io/not-ready", Operator: "Exists"},
		{Key: "node.kubernetes.io/network-unavailable", Operator: "Exists"},
		{Key: "node-role.kubernetes.io/control-plane", Operator: "Exists"},
	}
	if diff := cmp.Diff(want, pod.Tolerations); diff != "" {
		t.Errorf("exactly the taints of a new node (-want +got):\n%s", diff)
	}
	affinity := pod.Affinity.NodeAffinity
	assert.Nil(t, affinity.RequiredDuringSchedulingIgnoredDuringExecution, "a hosted control plane has no nodes")
	require.Len(t, affinity.PreferredDuringSchedulingIgnoredDuringExecution, 1)
	assert.Equal(t, "node-role.kubernetes.io/control-plane", affinity.PreferredDuringSchedulingIgnoredDuringExecution[0].Preference.MatchExpressions[0].Key)

	agent := pod.Containers[0]
	assert.Equal(t, "registry.example.com/fleetling:1", agent.Image)
	assert.Empty(t, agent.Ports)
	require.NotNil(t, agent.LivenessProbe)
	assert.Equal(t, corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/fleetling", "probe"}}}, agent.LivenessProbe.ProbeHandler)
	require.NotNil(t, agent.ReadinessProbe)
	assert.Equal(t, corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/fleetling", "probe", "--ready"}}}, agent.ReadinessProbe.ProbeHandler)
	one := intstr.FromInt32(1)
	none := intstr.FromInt32(0)
	assert.Equal(t, &appsv1.RollingUpdateDeployment{MaxSurge: &one, MaxUnavailable: &none}, deployment.Spec.Strategy.RollingUpdate, "a bad image never replaces a good Pod")
}

func TestC3EverythingElseStaysRestricted(t *testing.T) {
	var deployment appsv1.Deployment
	for _, o := range shipped(t) {
		switch o.GetKind() {
		case "Deployment":
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &deployment))
		case "Namespace":
			want := map[string]string{
				"pod-security.kubernetes.io/enforce": "privileged",
				"pod-security.kubernetes.io/audit":   "restricted", "pod-security.kubernetes.io/warn": "restricted",
			}
			for key, level := range want {
				assert.Equal(t, level, o.GetLabels()[key], key)
			}
		}
	}
	pod, agent := deployment.Spec.Template.Spec, deployment.Spec.Template.Spec.Containers[0]
	assert.False(t, pod.HostPID)
	assert.False(t, pod.HostIPC)
	assert.True(t, *pod.SecurityContext.RunAsNonRoot)
	assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
	assert.False(t, *agent.SecurityContext.AllowPrivilegeEscalation)
	assert.True(t, *agent.SecurityContext.ReadOnlyRootFilesystem)
	assert.Equal(t, []corev1.Capability{"ALL"}, agent.SecurityContext.Capabilities.Drop)
	assert.Empty(t, agent.SecurityContext.Capabilities.Add)
	for _, volume := range pod.Volumes {
		assert.Nil(t, volume.HostPath, volume.Name)
	}
}

func TestTheRenderedConfigurationIsThatOfTheFlags(t *testing.T) {
	made := installed(t)
	url, branch, err := Source(made)
	require.NoError(t, err)
	assert.Equal(t, "https://git.example.org/fleet.git", url)
	assert.Equal(t, "refs/heads/main", branch)
	holder, err := find(made, "", "ConfigMap", configName)
	require.NoError(t, err)
	text, _, _ := unstructured.NestedString(holder.Object, "data", configKey)
	want := `apiVersion: config.fleetling.dev/v1alpha1
dataDir: /var/lib/fleetling
identity: /etc/fleetling/identity/identity.yaml
kind: AgentConfiguration
listen:
  health: "0"
  metrics: "0"
source:
  branch: refs/heads/main
  credentials: /etc/fleetling/git
  url: https://git.example.org/fleet.git
trust:
  signers: /etc/fleetling/signers
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	signers, err := find(made, "", "ConfigMap", signersName)
	require.NoError(t, err)
	data, _, _ := unstructured.NestedStringMap(signers.Object, "data")
	assert.Equal(t, map[string]string{"alice.pub": "ssh-ed25519 AAAA alice\n"}, data)
}

func TestAConfigurationOfOnesOwnGetsItsListenersTurnedOff(t *testing.T) {
	own := install()
	own.URL = ""
	own.Config = []byte("apiVersion: config.fleetling.dev/v1alpha1\nkind: AgentConfiguration\nsource: {url: https://g.example.org/a.git, interval: 1m}\n")
	made, err := own.Into(shipped(t))
	require.NoError(t, err)
	holder, _ := find(made, "", "ConfigMap", configName)
	text, _, _ := unstructured.NestedString(holder.Object, "data", configKey)
	for _, line := range []string{`health: "0"`, "credentials: /etc/fleetling/git", `metrics: "0"`, "interval: 1m", "url: https://g.example.org/a.git", "branch: refs/heads/main"} {
		assert.Contains(t, text, line)
	}
	own.Config = append(own.Config, "listen: {metrics: \":8080\"}\n"...)
	made, err = own.Into(shipped(t))
	require.NoError(t, err)
	_, err = Bundle(made, []Entry{entryOf("a")}, target())
	assert.ErrorContains(t, err, "listen.metrics would take a port of the node")
}

func TestPlaceholdersAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Install)
		want  string
	}{
		"no image":             {func(i *Install) { i.Image = "" }, "--image"},
		"no URL":               {func(i *Install) { i.URL = "" }, "--url"},
		"no signer":            {func(i *Install) { i.Signers = nil }, "--signers"},
		"another kind of file": {func(i *Install) { i.Config = []byte("kind: Fleet") }, "not an AgentConfiguration"},
		"a key twice":          {func(i *Install) { i.Config = []byte("kind: a\nkind: b\n") }, "config.yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			i := install()
			c.spoil(&i)
			_, err := i.Into(shipped(t))
			assert.ErrorContains(t, err, c.want)
		})
	}
	_, err := install().Into(nil)
	assert.ErrorContains(t, err, "not fleetling's")
}

func TestInstallingLeavesTheManifestsAlone(t *testing.T) {
	manifests := shipped(t)
	before, err := Text(manifests)
	require.NoError(t, err)
	_, err = install().Into(manifests)
	require.NoError(t, err)
	after, err := Text(manifests)
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
}

func TestTheSameInputGivesTheSameBytes(t *testing.T) {
	render := func() string {
		bundle, err := Bundle(installed(t), []Entry{entryOf("a"), entryOf("b")}, target())
		require.NoError(t, err)
		text, err := Text(bundle)
		require.NoError(t, err)
		return string(text)
	}
	first := render()
	for range 3 {
		require.Equal(t, first, render())
	}
	again, err := Read("bundle.yaml", []byte(first))
	require.NoError(t, err)
	assert.Empty(t, Lint(again), "what is printed can be read back and has no finding")
	assert.Equal(t, 3, Sets(again))
}

func TestIdentitiesAreThoseThatTheAgentAccepts(t *testing.T) {
	entry := entryOf("a")
	entry.Labels = map[string]string{"a": "true", "b": "123", "c": "1e3", "d": "y", "e": "on", "f": "0o7", "g": "null", "h": ""}
	object, err := identityOf(entry, "prod")
	require.NoError(t, err)
	text, _, _ := unstructured.NestedString(object.Object, "data", identityKey)
	identity, err := fleet.ParseIdentity("identity.yaml", []byte(text))
	require.NoError(t, err)
	assert.Equal(t, fleet.Identity{Name: "a", ClusterSet: "prod", Labels: entry.Labels}, identity)

	entry.Name = strings.Repeat("a", 33)
	_, err = identityOf(entry, "prod")
	assert.ErrorContains(t, err, "at most 32 characters")
}

// An overlay of one's own, as README.md has it, goes in as rendered text.
func TestAnOverlayWithTheComponentIsAnAgentToBeBorn(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(root, "manifests"), os.DirFS("../../manifests")))
	require.NoError(t, os.Mkdir(filepath.Join(root, "mine"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "mine", "kustomization.yaml"), []byte(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../manifests]
components: [../manifests/birth]
images: [{name: fleetling, newName: registry.example.com/fleetling, newTag: "2"}]
labels: [{pairs: {team: platform}}]
`), 0o644))
	result, err := render.New(sources.DefaultLimits()).Render(os.DirFS(root), render.Request{Path: "mine"})
	require.NoError(t, err)
	var objects []Object
	for _, o := range result.Objects {
		objects = append(objects, Object{Unstructured: o.Unstructured})
	}
	text, err := Text(objects)
	require.NoError(t, err)
	manifests, err := Read("mine.yaml", text)
	require.NoError(t, err)
	i := install()
	i.Image = ""
	made, err := i.Into(manifests)
	require.NoError(t, err)
	bundle, err := Bundle(made, []Entry{entryOf("a")}, target())
	require.NoError(t, err)
	rendered, err := Text(bundle)
	require.NoError(t, err)
	assert.Contains(t, string(rendered), "image: registry.example.com/fleetling:2\n")
	assert.Contains(t, string(rendered), "team: platform\n")
}

func TestPlainIsWhatOneClusterNeeds(t *testing.T) {
	made, err := Plain(installed(t), entryOf("a"), "prod")
	require.NoError(t, err)
	last := made[len(made)-1]
	assert.Equal(t, "ConfigMap/fleetling-system/fleetling-identity", last.String())
	assert.Len(t, made, len(installed(t))+1)
	for _, o := range made {
		assert.NotEqual(t, addonsGroup, o.GroupVersionKind().Group)
	}
	service := resource("Service", agentNamespace, "metrics", nil)
	_, err = Plain(append(installed(t), service), entryOf("a"), "prod")
	assert.ErrorContains(t, err, "Service/fleetling-system/metrics", "it is the same bundle")
}

func TestUnknownVersionsOfTheGroupAreRefused(t *testing.T) {
	to := target()
	to.APIVersion = "v1alpha4"
	_, err := Bundle(installed(t), []Entry{entryOf("a")}, to)
	assert.ErrorContains(t, err, "the versions are v1beta2 and v1beta1")
}
