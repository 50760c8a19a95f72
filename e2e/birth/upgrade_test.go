package birth_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/birth"
	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/world"
)

// newer, newest and broken are images that commits bring.
const (
	newer  = "registry.example.com/fleetling:2"
	newest = "registry.example.com/fleetling:3"
	broken = "registry.example.com/fleetling:4"
)

// images are the programs of the images: the one that ships under three names,
// and one that ends at once.
func (s *scenario) images() map[string]string {
	s.Helper()
	crashing := filepath.Join(s.life.TempDir(), "crashing")
	s.do(os.WriteFile(crashing, []byte("#!/bin/sh\nexit 1\n"), 0o755))
	return map[string]string{image: s.binary, newer: s.binary, newest: s.binary, broken: crashing}
}

// upgraded has the agent's own manifests come by Git, over what Cluster API has
// delivered.
func (s *scenario) upgraded() {
	s.vendorManifests()
	before := s.installed()
	sofar := len(s.requests())
	s.wantImage(newer)
	s.value("addons/base/shared.yaml", "shared", "with an upgrade")
	next := s.push("the agent by Git, upgraded")
	s.runsAlone(newer, next)
	s.has("shared", "with an upgrade")
	assert.Equal(s, before, s.installed(), "nothing was made anew")
	s.agentWentLast(s.requests()[sofar:], "/namespaces/shop/configmaps/shared")

	// What the management cluster still has is not sent again.
	s.deliver()
	s.do(s.management.Delivered(s.Context(), name, 3))
	assert.Equal(s, []string{newer}, s.kubelet.Images())
}

// brokenImage has a commit bring a program that ends at once: the agent that runs
// goes on.
func (s *scenario) brokenImage() {
	good := s.kubelet.Pod()
	started := len(good.Started())
	s.wantImage(broken)
	s.push("a broken image")
	s.do(s.workload.AddOnCondition(s.Context(), "fleetling", v1alpha1.Healthy, "Unhealthy"))
	s.do(harness.Eventually(s.Context(), func(context.Context) error {
		if images := s.kubelet.Images(); !slices.Equal(images, []string{newer, broken}) {
			return fmt.Errorf("images that run: %v", images)
		}
		return nil
	}))
	// Exit code 1: not all is well.
	status, err := exec.CommandContext(s.Context(), s.binary, "status", "--kubeconfig", s.workload.KubeconfigFile()).CombinedOutput()
	require.Error(s, err)
	assert.Contains(s, string(status), "Deployment/fleetling-system/fleetling is InProgress", "it is named")

	// Others are served meanwhile, by the one that is well.
	s.value("addons/base/shared.yaml", "shared", "beside a broken image")
	s.push("beside a broken image")
	s.has("shared", "beside a broken image")
	assert.Same(s, good, s.kubelet.Pod())
	assert.Len(s, good.Started(), started)
	s.leads(good)
}

// mended goes on to an image that works, and back.
func (s *scenario) mended() {
	before := s.installed()
	s.wantImage(newest)
	s.runsAlone(newest, s.push("an image that works"))
	s.wantImage(newer)
	s.runsAlone(newer, s.push("back to the one before"))
	assert.Equal(s, before, s.installed())
	s.change("after it came back")
}

// vendorManifests puts manifests/ into the fleet repository, as an add-on whose
// configuration is the delivered one.
func (s *scenario) vendorManifests() {
	s.Helper()
	manifests := filepath.Join(s.root, "manifests")
	s.do(filepath.WalkDir(manifests, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.Name() == "example":
			return filepath.SkipDir
		case filepath.Ext(path) != ".yaml":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(manifests, path)
		s.repo.Write("fleetling/"+filepath.ToSlash(inside), string(text))
		return err
	}))
	config := &corev1.ConfigMap{}
	s.do(s.workload.Client.Get(s.Context(), client.ObjectKey{Namespace: world.Namespace, Name: "fleetling-config"}, config))
	patch, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": config.Name, "namespace": config.Namespace}, "data": config.Data,
	})
	s.do(err)
	s.repo.Write("addons/fleetling/config.yaml", string(patch))
	signers := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "fleetling-signers", "namespace": config.Namespace}, "data": map[string]string{s.key.File(): s.key.Public()},
	}
	patch, err = yaml.Marshal(signers)
	s.do(err)
	s.repo.Write("addons/fleetling/signers.yaml", string(patch))
	fleet, err := os.ReadFile(filepath.Join(s.repo.Dir, "fleetling.yaml"))
	s.do(err)
	s.repo.Write("fleetling.yaml", string(fleet)+"- {name: fleetling, path: addons/fleetling}\n")
}

func (s *scenario) wantImage(reference string) {
	repository, tag, _ := strings.Cut(reference, ":")
	s.repo.Write("addons/fleetling/kustomization.yaml", fmt.Sprintf(`resources: [../../fleetling]
components: [../../fleetling/birth]
images: [{name: fleetling, newName: %s, newTag: "%s"}]
patches: [{path: config.yaml}, {path: signers.yaml}]
`, repository, tag))
}

// installed gives the UIDs of what came with the agent.
func (s *scenario) installed() map[string]string {
	s.Helper()
	uids := map[string]string{}
	for _, o := range s.render("--plain", name) {
		live := o.DeepCopy()
		s.do(s.workload.Client.Get(s.Context(), client.ObjectKeyFromObject(o), live))
		uids[o.GetKind()+"/"+o.GetName()] = string(live.GetUID())
	}
	return uids
}

// runsAlone waits until the only Pod that runs is one of an image, leads, and has
// reported a revision.
func (s *scenario) runsAlone(image, revision string) {
	s.Helper()
	s.do(harness.Eventually(s.Context(), func(context.Context) error {
		if images := s.kubelet.Images(); !slices.Equal(images, []string{image}) {
			return fmt.Errorf("images that run: %v", images)
		}
		return nil
	}))
	s.do(s.workload.Ready(s.Context(), revision))
	s.do(s.workload.AddOnReady(s.Context(), "fleetling", revision))
	s.leads(s.kubelet.Pod())
	deployment := &appsv1.Deployment{}
	s.do(s.workload.Client.Get(s.Context(), client.ObjectKey{Namespace: world.Namespace, Name: "fleetling"}, deployment))
	assert.Equal(s, image, deployment.Spec.Template.Spec.Containers[0].Image)
	for _, entry := range deployment.ManagedFields {
		assert.Contains(s, []string{"fleetling", "kube-controller-manager"}, entry.Manager, "who else writes the Deployment")
	}
}

// leads waits until a Pod holds the Lease: by the name that it keeps in its data
// folder.
func (s *scenario) leads(pod *birth.Pod) {
	s.Helper()
	own, err := pod.File("/var/lib/fleetling/holder")
	s.do(err)
	s.do(harness.Eventually(s.Context(), func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		err := s.workload.Client.Get(ctx, client.ObjectKey{Namespace: world.Namespace, Name: "fleetling"}, lease)
		if holder := lease.Spec.HolderIdentity; err == nil && (holder == nil || !strings.HasSuffix(*holder, string(own))) {
			return fmt.Errorf("the Lease is not held by %s: %v", own, lease.Spec.HolderIdentity)
		}
		return err
	}))
}

// requests are the agent's, whoever its Pod was.
func (s *scenario) requests() []cluster.Event {
	s.Helper()
	events, err := s.workload.Audit(s.Context(), world.User)
	s.do(err)
	return events
}

// agentWentLast requires of requests that an object was written before the agent
// itself was.
func (s *scenario) agentWentLast(requests []cluster.Event, other string) {
	s.Helper()
	first := func(path string) int {
		return slices.IndexFunc(requests, func(e cluster.Event) bool {
			return e.Verb == "patch" && strings.Contains(e.RequestURI, path)
		})
	}
	wrote, upgraded := first(other), first("/deployments/fleetling")
	require.GreaterOrEqual(s, wrote, 0)
	assert.Greater(s, upgraded, wrote, "the agent itself is written last")
}
