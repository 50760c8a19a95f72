package birth_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetling/fleetling/e2e/birth"
	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/process"
	"github.com/fleetling/fleetling/e2e/world"
	"github.com/fleetling/fleetling/sources/gittest"
)

const (
	name  = "prod-ap-south"
	image = "registry.example.com/fleetling:1"

	// places are the management cluster and one workload cluster at a time.
	places = 2

	password = "hunter2"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// scenario is one management cluster, and one workload cluster after another
// under one name.
type scenario struct {
	*testing.T
	// life is the whole test, T the part of it that runs.
	life         *testing.T
	root, binary string
	host         *cluster.Host
	management   *birth.Management
	workload     *world.Member
	kubelet      *birth.Kubelet

	repo   *gittest.Repo
	key    gittest.Key
	server *gittest.HTTPServer
	// credentials and secrets are what `fleetling capi render` reads and writes.
	credentials, secrets string
}

// newScenario starts the management cluster and the first workload cluster.
func newScenario(t *testing.T) *scenario {
	t.Helper()
	root, err := build.Root()
	require.NoError(t, err)
	capi, err := build.FindCAPIManager(t.Context(), root)
	require.NoError(t, err)
	release, err := harness.Places(t.Context(), places)
	require.NoError(t, err)
	t.Cleanup(release)
	s := newFleetScenario(t)
	s.management, err = birth.StartManagement(t.Context(), s.host, capi, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() {
		s.management.Stop()
		if t.Failed() {
			t.Logf("manager: %s", process.Tail(s.management.Log()))
		}
	})
	s.startWorkload()
	return s
}

// newFleetScenario is one without clusters.
func newFleetScenario(t *testing.T) *scenario {
	t.Helper()
	host, err := harness.NewHost(t.Context())
	require.NoError(t, err)
	t.Cleanup(host.Stop)
	s := &scenario{T: t, life: t, host: host, credentials: t.TempDir(), secrets: filepath.Join(t.TempDir(), "secrets.yaml")}
	s.root, err = build.Root()
	require.NoError(t, err)
	s.binary, err = harness.Binary(t.Context())
	require.NoError(t, err)
	s.newFleet()
	return s
}

// do requires something to end well.
func (s *scenario) do(err error) {
	s.Helper()
	require.NoError(s, err)
}

// run runs a part as a subtest; after one that failed, the next ones would say
// nothing.
func (s *scenario) run(what string, part func(s *scenario)) {
	s.Helper()
	outer := s.T
	defer func() { s.T = outer }()
	if !outer.Run(what, func(t *testing.T) { s.T = t; part(s) }) {
		outer.FailNow()
	}
}

// startWorkload starts a control plane as a provider would, with nothing in it.
func (s *scenario) startWorkload() {
	s.Helper()
	started, err := s.host.Start(s.Context(), cluster.Options{Name: name})
	s.do(err)
	s.life.Cleanup(started.Stop)
	s.workload = world.Of(s.life, started)
}

// startAgent runs the delivered Pod.
func (s *scenario) startAgent() {
	s.Helper()
	kubelet, err := birth.Run(s.Context(), s.workload.Cluster, birth.Workload{
		Namespace: world.Namespace, Deployment: "fleetling", Images: s.images(),
	}, s.life.TempDir())
	s.do(err)
	s.kubelet = kubelet
	s.life.Cleanup(func() {
		last := kubelet.Pod()
		kubelet.Stop()
		if s.life.Failed() && last != nil {
			s.life.Logf("agent: %s", process.Tail(last.Log()))
		}
	})
}

// crash ends the agent, and waits until it runs again.
func (s *scenario) crash() {
	s.Helper()
	pod := s.kubelet.Pod()
	before := len(pod.Started())
	pod.Crash()
	s.do(harness.Eventually(s.Context(), func(context.Context) error {
		if len(pod.Started()) == before {
			return errors.New("the container was not started again")
		}
		return nil
	}))
}

// gone waits until an object is not there any more.
func (s *scenario) gone(c client.Client, o *unstructured.Unstructured) {
	s.Helper()
	live := o.DeepCopy()
	s.do(harness.Eventually(s.Context(), func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(o), live)
		if err == nil {
			return fmt.Errorf("%s %s is still there", o.GetKind(), o.GetName())
		}
		return client.IgnoreNotFound(err)
	}))
}

// newFleet makes the fleet repository, on a server that asks for a password, and
// the entry as `fleetling capi new` writes it.
func (s *scenario) newFleet() {
	s.Helper()
	s.repo, s.key = gittest.NewRepo(s), gittest.NewSSHKey(s, "founder", "ed25519")
	s.server = gittest.ServeHTTP(s, s.repo.Dir, gittest.HTTPOptions{TLS: true, Username: "fleet", Password: password})
	s.writeCredentials(password)
	s.repo.Write("signers/"+s.key.File(), s.key.Public())
	s.repo.Write("fleetling.yaml", `apiVersion: config.fleetling.dev/v1alpha1
kind: Fleet
clusterSet: prod
clusters: {files: ["clusters/*.yaml"], unlisted: identity}
labels:
  region: {required: true, values: [ap-south, eu-west]}
  tier: {values: [canary, standard]}
addons:
- {name: policies, path: policies}
- {name: platform, path: "addons/{{labels.region}}", dependsOn: [policies]}
- {name: canary, path: addons/canary, when: {matchLabels: {tier: canary}}}
`)
	s.repo.Write("policies/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
	s.repo.Write("addons/base/kustomization.yaml", "resources: [shared.yaml]\n")
	s.value("addons/base/shared.yaml", "shared", "first")
	for _, region := range []string{"ap-south", "eu-west"} {
		s.repo.Write("addons/"+region+"/kustomization.yaml", "resources: [../base, region.yaml]\n")
		s.value("addons/"+region+"/region.yaml", "region", region)
	}
	s.value("addons/canary/canary.yaml", "canary", "yes")
	s.fleetling("capi", "new", name, "--repository", s.repo.Dir, "--label", "region=ap-south", "--label", "tier=canary")
}

// value writes a ConfigMap of namespace shop.
func (s *scenario) value(path, name, value string) {
	s.repo.Write(path, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", namespace: shop}\ndata: {value: \""+value+"\"}\n")
}

func (s *scenario) push(message string) string { return s.repo.Commit(message, s.key) }

func (s *scenario) writeCredentials(password string) {
	s.Helper()
	dir := filepath.Join(s.credentials, "git")
	s.do(os.MkdirAll(dir, 0o700))
	for file, content := range map[string]string{"username": "fleet", "password": password, "ca.crt": string(s.server.CA())} {
		s.do(os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600))
	}
}

// entry reads the cluster entry.
func (s *scenario) entry() *unstructured.Unstructured {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.repo.Dir, "clusters", name+".yaml"))
	s.do(err)
	objects, err := birth.Objects(text)
	s.do(err)
	require.Len(s, objects, 1)
	return objects[0]
}

// relabel writes the cluster entry with another label.
func (s *scenario) relabel(old, now string) {
	s.Helper()
	path := filepath.Join(s.repo.Dir, "clusters", name+".yaml")
	text, err := os.ReadFile(path)
	s.do(err)
	require.Contains(s, string(text), old)
	s.repo.Write("clusters/"+name+".yaml", strings.Replace(string(text), old, now, 1))
}

// fleetling runs the binary that ships, and gives what it printed.
func (s *scenario) fleetling(args ...string) []byte {
	s.Helper()
	var problems strings.Builder
	cmd := exec.CommandContext(s.Context(), s.binary, args...)
	cmd.Stderr = &problems
	out, err := cmd.Output()
	require.NoError(s, err, "fleetling %v: %s", args, &problems)
	return out
}

// render gives the bundle of the repository as it stands: what is printed, then
// what is written to the file of secrets.
func (s *scenario) render(args ...string) []*unstructured.Unstructured {
	s.Helper()
	config := filepath.Join(s.TempDir(), "config.yaml")
	s.do(os.WriteFile(config, []byte("apiVersion: config.fleetling.dev/v1alpha1\nkind: AgentConfiguration\nsource: {interval: 2s}\n"), 0o600))
	all := append([]string{
		"capi", "render", "--repository", s.repo.Dir, "--manifests", filepath.Join(s.root, "manifests"), "--image", image,
		"--url", s.server.URL, "--branch", "refs/heads/main", "--config", config,
	}, args...)
	objects, err := birth.Objects(s.fleetling(all...))
	s.do(err)
	return objects
}

// bundle gives the objects for the management cluster, those with secrets too.
func (s *scenario) bundle() []*unstructured.Unstructured {
	s.Helper()
	objects := s.render("--credentials", s.credentials, "--with-secrets", s.secrets)
	text, err := os.ReadFile(s.secrets)
	s.do(err)
	secrets, err := birth.Objects(text)
	s.do(err)
	return append(objects, secrets...)
}

// deliver applies the bundle of the repository as it stands.
func (s *scenario) deliver() { s.Helper(); s.do(s.management.Apply(s.Context(), s.bundle()...)) }

// has requires a value of a ConfigMap of namespace shop.
func (s *scenario) has(name, value string) {
	s.Helper()
	_, err := s.workload.ConfigMap(s.Context(), "shop", name, "value", value)
	s.do(err)
}

// change commits another content, and waits until it is there.
func (s *scenario) change(value string) {
	s.Helper()
	s.value("addons/base/shared.yaml", "shared", value)
	s.do(s.workload.Ready(s.Context(), s.push(value)))
	s.has("shared", value)
}
