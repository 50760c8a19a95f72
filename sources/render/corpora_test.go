package render

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/fleetling/fleetling/sources"
)

// corpora gives the folder of real manifests, and "" where none was given.
func corpora(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("FLEETLING_CORPORA") //nolint:forbidigo // where the manifests lie depends on the machine
	if dir == "" {
		tb.Log("FLEETLING_CORPORA IS NOT SET: NOTHING WAS COMPARED WITH KUSTOMIZE OVER REAL MANIFESTS")
	}
	return dir
}

// TestCorporaRenderAsKustomizeDoes builds every kustomization of the corpora by
// both ways of ours and by kustomize alone.
func TestCorporaRenderAsKustomizeDoes(t *testing.T) {
	root := corpora(t)
	if root == "" {
		return
	}
	fsys := os.DirFS(root)
	disk := onDisk(t, fsys)
	counts, refused := map[string]int{}, 0
	for _, dir := range kustomizations(t, fsys) {
		req := Request{AddOn: "corpus", Path: dir}
		got, err := New(sources.DefaultLimits()).Render(fsys, req)
		if err != nil {
			t.Logf("%s: %v", dir, err)
			refused++
			continue
		}
		counts[dir] = len(got.Objects)
		assert.Empty(t, cmp.Diff(byIdentity(kustomizeAlone(t, disk, dir)), byIdentity(contents(got))), "%s: -kustomize +ours", dir)
		long, err := longWay(fsys, req, sources.DefaultLimits())
		require.NoError(t, err, dir)
		assert.Equal(t, long.Digest, got.Digest, dir)
		assert.Empty(t, cmp.Diff(long.Objects, got.Objects), "%s: -long way +short way", dir)
	}
	assert.Equal(t, 6, refused, "four components, and two kustomizations that name files which are not there")
	assert.Len(t, counts, 93)
	for dir, want := range map[string]int{
		"kube-prometheus":                                                          131,
		"cel-admission-library/apis/k8s-v1":                                        66,
		"cel-admission-library/controls":                                           60,
		"cel-admission-library/runtime-policies":                                   6,
		"gatekeeper-library/library":                                               49,
		"anthos-samples/asm-acm-tutorial/root-sync/init":                           7,
		"anthos-samples/asm-acm-tutorial/root-sync/deploy-authorization-policies":  18,
		"anthos-samples/multi-environments-kustomize/config-source/overlays/dev":   4,
		"anthos-samples/multi-environments-kustomize/config-source/overlays/prod":  4,
		"anthos-samples/asm-acm-tutorial/root-sync/enforce-authorization-policies": 17,
	} {
		assert.Equal(t, want, counts[dir], dir)
	}
}

// TestCorporaFoldersRender renders folders that hold no kustomization.
func TestCorporaFoldersRender(t *testing.T) {
	root := corpora(t)
	if root == "" {
		return
	}
	for dir, want := range map[string]int{
		"cel-admission-library/configuration":                       2,
		"anthos-samples/namespace-specific-policy/manual-rendering": 17,
		"kube-prometheus/manifests":                                 131,
	} {
		got, err := New(sources.DefaultLimits()).Render(os.DirFS(root), Request{AddOn: "corpus", Path: dir})
		require.NoError(t, err)
		assert.Len(t, got.Objects, want, dir)
	}
}

func kustomizations(t *testing.T, fsys fs.FS) (dirs []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(fsys, ".", func(name string, _ fs.DirEntry, err error) error {
		if slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name)) {
			dirs = append(dirs, path.Dir(name))
		}
		return err
	}))
	return dirs
}
