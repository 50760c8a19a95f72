package cli

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// capiWorld is a fleet repository with one cluster for Cluster API.
type capiWorld struct{ repository, bundle string }

func newCapiWorld(t *testing.T) capiWorld {
	t.Helper()
	w := capiWorld{repository: t.TempDir(), bundle: filepath.Join(t.TempDir(), "bundle.yaml")}
	public, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	key, err := ssh.NewPublicKey(public)
	require.NoError(t, err)
	w.write(t, "signers/alice.pub", string(ssh.MarshalAuthorizedKey(key)))
	w.write(t, "fleetling.yaml", `apiVersion: config.fleetling.dev/v1alpha1
kind: Fleet
clusterSet: prod
clusters: {files: ["clusters/*.yaml"], unlisted: deny}
labels: {region: {required: true, values: [ap-south, eu-west]}}
addons:
- {name: base, path: base}
`)
	code, _, errs := runCapi(t, "new", "a", "--label", "region=ap-south", "--repository", w.repository)
	require.Zero(t, code, errs)
	return w
}

func (w capiWorld) write(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(w.repository, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	return name
}

func runCapi(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), append([]string{"capi"}, args...), World{Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

func (w capiWorld) render(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	return runCapi(t, append([]string{
		"render", "--repository", w.repository, "--manifests", "../../manifests",
		"--image", "registry.example.com/fleetling:1", "--url", "https://git.example.org/fleet.git",
	}, args...)...)
}

func TestCapiRendersWhatItsLintAccepts(t *testing.T) {
	w := newCapiWorld(t)
	code, out, errs := w.render(t)
	require.Zero(t, code, errs)
	assert.Contains(t, out, "name: fleetling-identity-a\n")
	assert.Contains(t, out, "alice.pub: |")
	require.NoError(t, os.WriteFile(w.bundle, []byte(out), 0o644))
	code, out, _ = runCapi(t, "lint", w.bundle)
	assert.Zero(t, code)
	assert.Equal(t, "good: 2 ClusterResourceSets\n", out)

	spoiled := strings.ReplaceAll(readText(t, w.bundle), "hostNetwork: true", "hostNetwork: false")
	require.NoError(t, os.WriteFile(w.bundle, []byte(spoiled), 0o644))
	code, out, errs = runCapi(t, "lint", w.bundle)
	assert.Equal(t, 1, code)
	assert.Contains(t, out, w.bundle+":2: ConfigMap/default/fleetling-agent key fleetling.yaml: Deployment/fleetling-system/fleetling: hostNetwork is off")
	assert.Empty(t, errs)
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

func TestCapiSecretsStandInAFileThatOnlyItsOwnerReads(t *testing.T) {
	w := newCapiWorld(t)
	credentials := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(credentials, "git"), 0o700))
	for name, text := range map[string]string{"username": "fleet", "password": "hunter2"} {
		require.NoError(t, os.WriteFile(filepath.Join(credentials, "git", name), []byte(text), 0o600))
	}
	secrets := filepath.Join(t.TempDir(), "secrets.yaml")
	require.NoError(t, os.WriteFile(secrets, []byte("readable by all"), 0o644))
	_, without, _ := w.render(t)
	code, out, errs := w.render(t, "--credentials", credentials, "--with-secrets", secrets)
	require.Zero(t, code, errs)
	assert.Equal(t, without, out, "the bundle is the same")
	info, err := os.Stat(secrets)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, os.WriteFile(w.bundle, []byte(out), 0o644))
	code, out, _ = runCapi(t, "lint", w.bundle, secrets)
	assert.Zero(t, code)
	assert.Equal(t, "good: 3 ClusterResourceSets\n", out)

	entries, err := os.ReadDir(filepath.Dir(secrets))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no temporary file stays")
}

func TestCapiTakesAClustersOwnCredentialsBeforeThoseOfAll(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"git/username": "all", "clusters/a/git/username": "own", "clusters/a/git/.hidden": "x", "clusters/a/member-key": "key",
	} {
		name = filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	own, _, err := readCredentials(folder, "a")
	require.NoError(t, err)
	assert.Equal(t, map[string][]byte{"username": []byte("own")}, own.Git)
	assert.Equal(t, "key", string(own.MemberKey))
	other, _, err := readCredentials(folder, "b")
	require.NoError(t, err)
	assert.Equal(t, map[string][]byte{"username": []byte("all")}, other.Git)
	assert.Nil(t, other.MemberKey)
}

func TestCapiNewWritesAnEntryOnce(t *testing.T) {
	w := newCapiWorld(t)
	before := readText(t, filepath.Join(w.repository, "clusters/a.yaml"))
	code, _, errs := runCapi(t, "new", "a", "--label", "region=eu-west", "--repository", w.repository)
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "already exists")
	assert.Equal(t, before, readText(t, filepath.Join(w.repository, "clusters/a.yaml")))

	code, out, errs := runCapi(t, "new", "b", "--label", "region=eu-west,cni=x", "--repository", w.repository, "--avoid", "10.1.0.0/16")
	require.Zero(t, code, errs)
	assert.Contains(t, out, "clusters/b.yaml: pods 10.2.0.0/16")
	assert.Contains(t, errs, "does not declare label cni")

	code, _, errs = runCapi(t, "new", "c", "--label", "region=mars", "--repository", w.repository)
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, `"mars"`)
	_, err := os.Stat(filepath.Join(w.repository, "clusters/c.yaml"))
	assert.ErrorIs(t, err, os.ErrNotExist, "nothing is written that agents would refuse")
}

func TestCapiSaysWhatToDo(t *testing.T) {
	w := newCapiWorld(t)
	none := filepath.Join(t.TempDir(), "none")
	plain := w.write(t, "plain.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no repository":              {[]string{"render", "--repository", none}, "none"},
		"no manifests":               {[]string{"render", "--repository", w.repository, "--manifests", none}, "--manifests"},
		"manifests of somebody else": {[]string{"render", "--repository", w.repository, "--manifests", plain}, "not fleetling's"},
		"secrets without a source":   {[]string{"render", "--with-secrets", none}, "--credentials"},
		"plain of all":               {[]string{"render", "--plain"}, "name one cluster"},
		"a bad pool":                 {[]string{"new", "x", "--pool", "10"}, "--pool"},
		"a bad range to avoid":       {[]string{"new", "x", "--avoid", "10"}, "--avoid"},
		"bad services":               {[]string{"new", "x", "--services", "10"}, "--services"},
		"nothing to lint":            {[]string{"lint", plain}, "no ClusterResourceSet"},
		"a file that is not there":   {[]string{"lint", none}, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := runCapi(t, c.args...)
			assert.Equal(t, 2, code)
			assert.Empty(t, out)
			assert.Contains(t, errs, c.want)
		})
	}
}

func TestCapiRefusesWhatNoAgentCouldUse(t *testing.T) {
	w := newCapiWorld(t)
	config := func(rest string) string {
		file := filepath.Join(t.TempDir(), "config.yaml")
		text := "apiVersion: config.fleetling.dev/v1alpha1\nkind: AgentConfiguration\n" + rest
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a URL with a password":       {[]string{"--url", "https://u:hunter2@git.example.org/f.git"}, "URL"},
		"a key that nobody knows":     {[]string{"--config", config("sorce: {interval: 10s}\n"), "--branch", "refs/heads/main"}, `unknown field "sorce"`},
		"a value that can't be":       {[]string{"--config", config("source: {interval: 1ms}\n"), "--branch", "refs/heads/main"}, "source.interval: at least 1s"},
		"a short branch":              {[]string{"--branch", "main"}, "refs/heads/NAME"},
		"a folder without keys":       {[]string{"--signers", t.TempDir()}, "no key of a first signer"},
		"a cluster without entry":     {[]string{"zzz"}, `"zzz"`},
		"an unknown version":          {[]string{"--api-version", "v1"}, "v1beta2 and v1beta1"},
		"a folder without credential": {[]string{"--credentials", t.TempDir(), "--with-secrets", filepath.Join(t.TempDir(), "s")}, "holds no credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := w.render(t, c.args...)
			assert.Equal(t, 2, code)
			assert.Empty(t, out)
			assert.Contains(t, errs, c.want)
			assert.NotContains(t, errs, "hunter2")
		})
	}
}

func TestCapiPlainIsForTheClusterItself(t *testing.T) {
	w := newCapiWorld(t)
	code, out, errs := w.render(t, "--plain", "a", "--url", "ssh://git@git.example.org/fleet.git")
	require.Zero(t, code, errs)
	assert.NotContains(t, out, "ClusterResourceSet")
	assert.True(t, strings.HasPrefix(out, "---\napiVersion: v1\nkind: Namespace\n"), "what others need comes first")
	assert.Contains(t, out, "name: fleetling-identity\n")
}
