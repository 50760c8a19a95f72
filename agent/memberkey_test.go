package agent

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/fleetling/fleetling/agent/clusterset"
	"github.com/fleetling/fleetling/discovery/peer"
)

func TestTheMemberKeyIsMadeOnceAndNeverReplaced(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets(Namespace)
	made, err := memberKey(t.Context(), secrets)
	require.NoError(t, err)
	read, err := memberKey(t.Context(), secrets)
	require.NoError(t, err)
	assert.Equal(t, made.Public(), read.Public())

	secret, err := secrets.Get(t.Context(), memberKeySecret, metav1.GetOptions{})
	require.NoError(t, err)
	secret.Data[memberKeyName] = []byte("-----BEGIN s3cret-----")
	_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = memberKey(t.Context(), secrets)
	require.ErrorContains(t, err, memberKeySecret)
	assert.NotContains(t, err.Error(), "s3cret")
}

func TestAnAPIServerThatDoesNotAnswerIsNoMissingKey(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	_, err := memberKey(t.Context(), client.CoreV1().Secrets(Namespace))
	require.ErrorContains(t, err, "connection refused")
	assert.Len(t, client.Actions(), 1, "nothing is made")
}

func TestWhatIsKeptOfTheClusterSetComesBack(t *testing.T) {
	uid := "this one"
	store := &clusterSetStore{fake.NewClientset().CoreV1().ConfigMaps(Namespace), func(context.Context) (string, error) { return uid, nil }}
	kept, err := store.load(t.Context())
	require.NoError(t, err)
	assert.Equal(t, clusterset.Kept{}, kept)
	want := clusterset.Kept{
		List:   clusterset.List{ClusterSet: "prod", Cluster: "a", Registry: &clusterset.Registry{Git: "https://git.example.com/r.git"}},
		Memory: peer.Memory{Marks: map[string]peer.Mark{"SHA256:x": {Sequence: 7}}},
	}
	for range 2 {
		require.NoError(t, store.save(t.Context(), want))
		kept, err = store.load(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, kept)
	}

	uid = "another"
	kept, err = store.load(t.Context())
	require.NoError(t, err)
	assert.Equal(t, clusterset.Kept{}, kept, "a restored backup of another cluster")
	uid = "this one"

	cm, err := store.client.Get(t.Context(), clusterSetName, metav1.GetOptions{})
	require.NoError(t, err)
	cm.Data[keptKey] = "{"
	_, err = store.client.Update(t.Context(), cm, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = store.load(t.Context())
	assert.ErrorContains(t, err, clusterSetName, "never as if nothing had been kept")
}
