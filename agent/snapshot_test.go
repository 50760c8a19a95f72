package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/fleetling/fleetling/apply"
)

// withObject is a content with one ConfigMap that holds text.
func withObject(t *testing.T, name, text string) content {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "shop"},
		"data": map[string]any{"text": text},
	}}
	c := content{Name: name, Path: "addons/" + name, Digest: "sha256:" + name, Revision: "r1"}
	c.objects, c.failures = apply.Decode(name, []apply.Manifest{{Unstructured: u, File: "addons/" + name + "/cm.yaml"}})
	require.Empty(t, c.failures)
	return c
}

func noise(t *testing.T, n int) string {
	t.Helper()
	b := make([]byte, n)
	_, err := rand.Read(b)
	require.NoError(t, err)
	return string(bytes.ToValidUTF8(b, []byte("x")))
}

func TestASnapshotUnpacksToWhatWasPacked(t *testing.T) {
	contents := []content{withObject(t, "a", "one"), withObject(t, "b", "two")}
	data, digest, err := pack(contents)
	require.NoError(t, err)
	again, digestAgain, err := pack(contents)
	require.NoError(t, err)
	assert.Equal(t, data, again, "equal contents give equal bytes")
	assert.Equal(t, digest, digestAgain)
	got, err := unpack(data, digest)
	require.NoError(t, err)
	if diff := cmp.Diff(contents, got, cmp.AllowUnexported(content{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASnapshotThatDoesNotHashToThePinIsNotUsed(t *testing.T) {
	data, digest, err := pack([]content{withObject(t, "a", "one")})
	require.NoError(t, err)
	data[len(data)-1] ^= 1
	_, err = unpack(data, digest)
	assert.ErrorIs(t, err, errSnapshotMissing)
}

func TestUntilThePinNamesTheNewSnapshotTheOldOneCounts(t *testing.T) {
	s := snapshots{fake.NewClientset().CoreV1().Secrets(Namespace)}
	ctx := t.Context()
	keep := func(c content, current string) string {
		data, digest, err := pack([]content{c})
		require.NoError(t, err)
		require.NoError(t, s.save(ctx, data, digest, current))
		return digest
	}
	first := keep(withObject(t, "a", noise(t, 2*partBytes)), "")
	second := keep(withObject(t, "b", noise(t, 2*partBytes)), first)
	for _, digest := range []string{first, second} {
		_, err := s.load(ctx, digest)
		assert.NoError(t, err, "both are there until the sweep")
	}
	require.NoError(t, s.sweep(ctx, second))
	_, err := s.load(ctx, first)
	assert.ErrorIs(t, err, errSnapshotMissing)
	got, err := s.load(ctx, second)
	require.NoError(t, err)
	assert.Equal(t, "b", got[0].Name)

	third := keep(withObject(t, "c", "small"), second)
	_, err = s.load(ctx, second)
	assert.NoError(t, err, "a smaller one takes no place of the one that counts")
	_, err = s.load(ctx, third)
	assert.NoError(t, err)
}

func TestASnapshotIsReadInTheOrderOfItsParts(t *testing.T) {
	client := fake.NewClientset().CoreV1().Secrets(Namespace)
	s := snapshots{client}
	data, digest, err := pack([]content{withObject(t, "a", noise(t, 12*partBytes))})
	require.NoError(t, err)
	require.NoError(t, s.save(t.Context(), data, digest, ""))
	_, err = s.load(t.Context(), digest)
	require.NoError(t, err, "part 10 comes after part 9")
	require.NoError(t, client.Delete(t.Context(), snapshotPrefix+"3", metav1.DeleteOptions{}))
	_, err = s.load(t.Context(), digest)
	assert.ErrorIs(t, err, errSnapshotMissing, "a part is missing")
}

func TestASnapshotThatIsTooLargeIsNotKept(t *testing.T) {
	client := fake.NewClientset().CoreV1().Secrets(Namespace)
	s := snapshots{client}
	err := s.save(t.Context(), make([]byte, partBytes*maxParts+1), "sha256:x", "")
	assert.ErrorIs(t, err, errSnapshotTooLarge)
	list, err := client.List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, list.Items)
}

func TestAKeeperWritesTheSnapshotBeforeThePinAndOnlyWhatChanged(t *testing.T) {
	clientset := fake.NewClientset()
	newKeeper := func() *keeper {
		return &keeper{pins: &pins{client: clientset.CoreV1().ConfigMaps(Namespace)}, snapshots: snapshots{clientset.CoreV1().Secrets(Namespace)}}
	}
	writes := func() []string {
		var verbs []string
		for _, action := range clientset.Actions() {
			if action.GetVerb() != "get" && action.GetVerb() != "list" {
				verbs = append(verbs, action.GetVerb()+" "+action.GetResource().Resource)
			}
		}
		clientset.ClearActions()
		return verbs
	}
	k := newKeeper()
	next := somePin()
	next.Snapshot = ""
	active := []content{withObject(t, "a", "one")}
	require.NoError(t, k.keep(t.Context(), next, active))
	assert.Equal(t, []string{"create secrets", "create configmaps"}, writes())

	require.NoError(t, k.keep(t.Context(), next, active))
	assert.Empty(t, writes(), "nothing changed")

	active = []content{withObject(t, "b", "two")}
	require.NoError(t, k.keep(t.Context(), next, active))
	assert.Equal(t, []string{"create secrets", "update configmaps", "delete secrets"}, writes())

	restarted := newKeeper()
	kept, err := restarted.restore(t.Context())
	require.NoError(t, err)
	require.Len(t, kept, 1)
	assert.Equal(t, "b", kept[0].Name)
	assert.NoError(t, restarted.snapshotProblem())

	list, err := clientset.CoreV1().Secrets(Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, secret := range list.Items {
		require.NoError(t, clientset.CoreV1().Secrets(Namespace).Delete(t.Context(), secret.Name, metav1.DeleteOptions{}))
	}
	lost := newKeeper()
	kept, err = lost.restore(t.Context())
	require.NoError(t, err, "a lost snapshot is no reason to stop")
	assert.Empty(t, kept)
	assert.ErrorIs(t, lost.snapshotProblem(), errSnapshotMissing)
	writes()
	require.NoError(t, lost.keep(t.Context(), next, active))
	assert.NotEmpty(t, writes(), "it is made again")
	assert.NoError(t, lost.snapshotProblem())
}
