package build

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

const (
	good   = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"it runs\") }\n"
	broken = "package main\n\nfunc main() { nothing() }\n"
)

func TestControlPlaneIsBuiltOnce(t *testing.T) {
	root := repository(t, good)
	_, err := FindControlPlane(root, "")
	require.ErrorIs(t, err, ErrNotBuilt)

	var progress strings.Builder
	plane, err := BuildControlPlane(t.Context(), root, "", &progress)
	require.NoError(t, err)
	assert.Contains(t, progress.String(), "packages")
	assert.Equal(t, "etcd", plane.Etcd[1])
	assert.Equal(t, Program{plane.Etcd[0], "kube-apiserver"}, plane.APIServer)
	assert.Equal(t, Program{plane.Etcd[0], "kube-controller-manager"}, plane.ControllerManager)
	assert.Equal(t, Program{plane.Etcd[0], "kube-proxy"}, plane.Proxy)
	assert.Equal(t, "it runs\n", output(t, plane.Etcd[0]))
	before, err := os.Stat(plane.Etcd[0])
	require.NoError(t, err)

	progress.Reset()
	again, err := BuildControlPlane(t.Context(), root, "", &progress)
	require.NoError(t, err)
	assert.Equal(t, plane, again)
	assert.Empty(t, progress.String())
	after, err := os.Stat(plane.Etcd[0])
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after))

	found, err := FindControlPlane(root, "")
	require.NoError(t, err)
	assert.Equal(t, plane, found)
}

func TestChangedSourceIsBuiltAnew(t *testing.T) {
	for name, change := range map[string]string{
		"main.go": strings.ReplaceAll(good, "it runs", "it runs anew"),
		"go.mod":  "module controlplane\n\ngo 1.25\n",
		"go.sum":  "\n",
	} {
		t.Run(name, func(t *testing.T) {
			root := repository(t, good)
			old, err := BuildControlPlane(t.Context(), root, "", &strings.Builder{})
			require.NoError(t, err)
			write(t, filepath.Join(root, "e2e", "controlplane", name), change)
			_, err = FindControlPlane(root, "")
			require.ErrorIs(t, err, ErrNotBuilt)

			plane, err := BuildControlPlane(t.Context(), root, "", &strings.Builder{})
			require.NoError(t, err)
			assert.NotEqual(t, old, plane)
			assert.Contains(t, output(t, plane.Etcd[0]), "it runs")
			assert.NoFileExists(t, old.Etcd[0], "the old one is not kept")
		})
	}
}

func TestBuildThatFailsSaysWhyAndLeavesNothing(t *testing.T) {
	root := repository(t, broken)
	_, err := BuildControlPlane(t.Context(), root, "", &strings.Builder{})
	require.ErrorContains(t, err, "undefined: nothing")
	_, err = FindControlPlane(root, "")
	require.ErrorIs(t, err, ErrNotBuilt)
	left, err := filepath.Glob(filepath.Join(Cache(root), "*controlplane-*"))
	require.NoError(t, err)
	assert.Empty(t, left)

	write(t, filepath.Join(root, "e2e", "controlplane", "main.go"), good)
	_, err = BuildControlPlane(t.Context(), root, "", &strings.Builder{})
	require.NoError(t, err, "mended, it builds")
}

func TestBuildEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := BuildControlPlane(ctx, repository(t, good), "", &strings.Builder{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestTwoBuildsWaitForEachOther(t *testing.T) {
	root := repository(t, good)
	var group errgroup.Group
	var progress [2]strings.Builder
	for i := range progress {
		group.Go(func() error {
			_, err := BuildControlPlane(t.Context(), root, "", &progress[i])
			return err
		})
	}
	require.NoError(t, group.Wait())
	quiet := 0
	for i := range progress {
		if progress[i].Len() == 0 {
			quiet++
		}
	}
	assert.Equal(t, 1, quiet, "one builds, the other finds it built")
}

func TestAssetsAreTakenPerBinary(t *testing.T) {
	root := repository(t, good)
	_, err := BuildControlPlane(t.Context(), root, "", &strings.Builder{})
	require.NoError(t, err)
	built, err := FindControlPlane(root, "")
	require.NoError(t, err)
	for name, test := range map[string]struct {
		files []string
		want  func(assets string) ControlPlane
	}{
		"an empty folder changes nothing": {nil, func(string) ControlPlane { return built }},
		"etcd alone": {[]string{"etcd"}, func(assets string) ControlPlane {
			return ControlPlane{Program{assets + "/etcd"}, built.APIServer, built.ControllerManager, built.Proxy}
		}},
		"what envtest has, which is no controller manager": {
			[]string{"etcd", "kube-apiserver", "kubectl"}, func(assets string) ControlPlane {
				return ControlPlane{Program{assets + "/etcd"}, Program{assets + "/kube-apiserver"}, built.ControllerManager, built.Proxy}
			},
		},
		"the controller manager alone": {[]string{"kube-controller-manager"}, func(assets string) ControlPlane {
			return ControlPlane{built.Etcd, built.APIServer, Program{assets + "/kube-controller-manager"}, built.Proxy}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			assets := folder(t, test.files...)
			got, err := FindControlPlane(root, assets)
			require.NoError(t, err)
			assert.Equal(t, test.want(assets), got)
		})
	}
}

func TestNothingIsBuiltWhereAssetsHoldAll(t *testing.T) {
	root := repository(t, broken)
	assets := folder(t, "etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy")
	plane, err := BuildControlPlane(t.Context(), root, assets, &strings.Builder{})
	require.NoError(t, err)
	assert.Equal(t, Program{assets + "/kube-apiserver"}, plane.APIServer)
}

func TestAssetsThatAreNotThereAreAnError(t *testing.T) {
	_, err := FindControlPlane(repository(t, good), "/nonexistent/assets")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "KUBEBUILDER_ASSETS")
}

func TestCoreDNSIsBuiltOnceAndKeptBesideTheControlPlane(t *testing.T) {
	root := repository(t, good)
	plane, err := BuildControlPlane(t.Context(), root, "", &strings.Builder{})
	require.NoError(t, err)
	_, err = FindCoreDNS(root)
	require.ErrorContains(t, err, "sources of coredns")

	dir := filepath.Join(root, "e2e", "coredns")
	write(t, filepath.Join(dir, "main.go"), strings.ReplaceAll(good, "it runs", "it answers"))
	write(t, filepath.Join(dir, "go.mod"), "module coredns\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "go.sum"), "")
	_, err = FindCoreDNS(root)
	require.ErrorIs(t, err, ErrNotBuilt)
	var progress strings.Builder
	path, err := BuildCoreDNS(t.Context(), root, &progress)
	require.NoError(t, err)
	assert.Contains(t, progress.String(), "coredns: compiled")
	assert.Equal(t, "it answers\n", output(t, path))
	found, err := FindCoreDNS(root)
	require.NoError(t, err)
	assert.Equal(t, path, found)

	again, err := FindControlPlane(root, "")
	require.NoError(t, err)
	assert.Equal(t, plane, again, "neither takes the other's away")
}

// The sources of Cluster API's programs are other modules': e2e/capi has their
// versions alone.
func TestCAPIManagersAreBuiltFromTheModulesThatHoldThem(t *testing.T) {
	root := repository(t, good)
	dir := filepath.Join(root, "e2e", "capi")
	held := filepath.Join(dir, "held")
	write(t, filepath.Join(dir, "go.mod"), "module capi\n\ngo 1.26\n\ntool sigs.k8s.io/cluster-api/core\n\n"+
		"require sigs.k8s.io/cluster-api v0.0.0\n\nreplace sigs.k8s.io/cluster-api => ./held\n")
	write(t, filepath.Join(dir, "go.sum"), "")
	write(t, filepath.Join(held, "go.mod"), "module sigs.k8s.io/cluster-api\n\ngo 1.26\n")
	for _, pkg := range []string{"core", "bootstrap/kubeadm", "controlplane/kubeadm", "test/infrastructure/docker"} {
		write(t, filepath.Join(held, pkg, "main.go"), strings.ReplaceAll(good, "it runs", "it manages "+pkg))
	}
	_, err := FindCAPIManager(t.Context(), root)
	require.ErrorIs(t, err, ErrNoCAPIManager)
	_, err = FindCAPIProviders(t.Context(), root)
	require.ErrorIs(t, err, ErrNoCAPIProviders)

	var progress strings.Builder
	manager, err := BuildCAPIManager(t.Context(), root, &progress)
	require.NoError(t, err)
	assert.Contains(t, progress.String(), "capi-core: compiled")
	assert.Equal(t, "it manages core\n", output(t, manager.Path))
	assert.Equal(t, filepath.Join(held, "core", "config"), manager.Config)
	_, err = FindCAPIProviders(t.Context(), root)
	require.ErrorIs(t, err, ErrNoCAPIProviders, "the core manager alone is no provider")

	providers, err := BuildCAPIProviders(t.Context(), root, &progress)
	require.NoError(t, err)
	for pkg, m := range map[string]CAPIManager{
		"bootstrap/kubeadm": providers.Bootstrap, "controlplane/kubeadm": providers.ControlPlane, "test/infrastructure/docker": providers.Infrastructure,
	} {
		assert.Equal(t, "it manages "+pkg+"\n", output(t, m.Path))
		assert.Equal(t, filepath.Join(held, pkg, "config"), m.Config)
	}
	found, err := FindCAPIProviders(t.Context(), root)
	require.NoError(t, err)
	assert.Equal(t, providers, found)
	core, err := FindCAPIManager(t.Context(), root)
	require.NoError(t, err)
	assert.Equal(t, manager, core, "none takes another's away")
}

// The version that the binary says it has must be that of its sources.
func TestVersionIsThatOfTheSources(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(root, "e2e", "controlplane", "go.mod"))
	require.NoError(t, err)
	assert.Contains(t, string(content), "k8s.io/kubernetes v"+kubernetes+"\n")
	assert.Contains(t, flags()[2], "gitVersion=v"+kubernetes+" ")
	assert.Contains(t, flags()[2], "gitMajor=1 ")
	assert.Contains(t, flags()[2], "gitMinor=37")
}

func TestRootIsFoundFromBelow(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), module)
	below := filepath.Join(root, "e2e", "cluster")
	require.NoError(t, os.MkdirAll(below, 0o755))
	write(t, filepath.Join(root, "e2e", "go.mod"), "module github.com/fleetling/fleetling/e2e\n")
	t.Chdir(below)
	got, err := Root()
	require.NoError(t, err)
	assert.Equal(t, root, got)

	t.Chdir(t.TempDir())
	_, err = Root()
	require.ErrorContains(t, err, "not inside fleetling's repository")
}

func TestFleetlingIsBuiltFromTheRootModule(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), module+"\ngo 1.26\n")
	write(t, filepath.Join(root, "agent", "cmd", "fleetling", "main.go"), good)
	path, err := Fleetling(t.Context(), root)
	require.NoError(t, err)
	assert.Equal(t, "it runs\n", output(t, path))

	write(t, filepath.Join(root, "agent", "cmd", "fleetling", "main.go"), broken)
	_, err = Fleetling(t.Context(), root)
	require.ErrorContains(t, err, "undefined: nothing")
}

// repository makes a root with a control plane that is small.
func repository(t *testing.T, source string) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "e2e", "controlplane")
	write(t, filepath.Join(dir, "main.go"), source)
	write(t, filepath.Join(dir, "go.mod"), "module controlplane\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "go.sum"), "")
	return root
}

func folder(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		write(t, filepath.Join(dir, name), "")
	}
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func output(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), path).Output()
	require.NoError(t, err)
	return string(out)
}
