package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	ctrlfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/fleet"
)

func TestHoldIdentity(t *testing.T) {
	last := &fleet.Identity{Name: "one", ClusterSet: "prod", Labels: map[string]string{"region": "ap"}}
	moved := fleet.Identity{Name: "one", ClusterSet: "prod", Labels: map[string]string{"region": "eu"}}
	emptied := fleet.Identity{Name: "one", ClusterSet: "prod"}
	renamed := fleet.Identity{Name: "two", ClusterSet: "prod", Labels: map[string]string{"region": "ap"}}
	for name, c := range map[string]struct {
		found  fleet.Identity
		err    error
		last   *fleet.Identity
		want   *fleet.Identity
		reason sources.Reason
	}{
		"the first one counts":                                 {found: moved, want: &moved},
		"a first one without labels counts":                    {found: emptied, want: &emptied},
		"changed labels count":                                 {found: moved, last: last, want: &moved},
		"C5: labels that are all gone hold the last good one":  {found: emptied, last: last, want: last, reason: sources.IdentityDiffers},
		"another name holds the last good one":                 {found: renamed, last: last, want: last, reason: sources.IdentityDiffers},
		"one that can't be read holds the last good one":       {err: &sources.Error{Reason: sources.IdentityMissing}, last: last, want: last, reason: sources.IdentityMissing},
		"one that was never there is nothing, and says so":     {err: &sources.Error{Reason: sources.IdentityMissing}, reason: sources.IdentityMissing},
		"one without labels is no loss where there never were": {found: emptied, last: &emptied, want: &emptied},
	} {
		t.Run(name, func(t *testing.T) {
			got := holdIdentity(c.found, c.err, c.last)
			assert.Equal(t, c.want, got.identity)
			assert.Equal(t, c.reason, sources.ReasonOf(got.err))
		})
	}
}

func TestAnIdentityThatIsNotThereSaysWhatToDo(t *testing.T) {
	_, err := readIdentity(filepath.Join(t.TempDir(), "identity.yaml"))
	assert.Equal(t, sources.IdentityMissing, sources.ReasonOf(err))
	assert.ErrorContains(t, err, "create ConfigMap fleetling-identity in namespace fleetling-system")
}

func TestAnIdentityThatCannotBeReadIsAnError(t *testing.T) {
	dir := t.TempDir()
	_, err := readIdentity(dir)
	assert.Equal(t, sources.IdentityMissing, sources.ReasonOf(err), "a folder in its place")
	path := filepath.Join(dir, "identity.yaml")
	require.NoError(t, os.WriteFile(path, []byte("name: [\n"), 0o600))
	_, err = readIdentity(path)
	assert.NotEmpty(t, sources.ReasonOf(err), "broken YAML")
	assert.False(t, errors.Is(err, os.ErrNotExist))
}

func TestTheNewestIdentityCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identity.yaml")
	text := func(name string) string {
		return "{apiVersion: config.fleetling.dev/v1alpha1, kind: Identity, name: " + name + ", clusterSet: prod}"
	}
	require.NoError(t, os.WriteFile(path, []byte(text("mounted")), 0o600))
	shown := func(data map[string]string) *corev1.ConfigMap { return &corev1.ConfigMap{Data: data} }
	for name, c := range map[string]struct {
		cm   *corev1.ConfigMap
		want string
		err  string
	}{
		"the mounted file until the API server answers":  {nil, "mounted", ""},
		"then the ConfigMap, which kubelet brings later": {shown(map[string]string{"identity.yaml": text("shown")}), "shown", ""},
		"an emptied one is lost (C5)":                    {shown(nil), "", "has no key identity.yaml"},
		"a broken one says where":                        {shown(map[string]string{"identity.yaml": "name: ["}), "", "ConfigMap/fleetling-system/fleetling-identity"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := identityOf(c.cm, path)
			assert.Equal(t, c.want, got.Name)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
		})
	}
}

func TestTell(t *testing.T) {
	missing := &sources.Error{Reason: sources.IdentityMissing, Err: errors.New("none")}
	broken := &sources.Error{Reason: sources.InvalidLabelValue, Err: errors.New("broken")}
	one := fleet.Identity{Name: "one", ClusterSet: "prod"}
	for name, c := range map[string]struct {
		found   fleet.Identity
		err     error
		last    *fleet.Identity
		node    string
		want    *fleet.Identity
		byName  bool
		differs string
	}{
		"nodes without a name say nothing":             {found: one, want: &one},
		"nodes with the same name agree":               {found: one, node: "one", want: &one},
		"another name is reported and holds":           {found: one, node: "two", want: &one, differs: "says two"},
		"so is it against the last good identity":      {err: broken, last: &one, node: "two", want: &one, differs: "says two"},
		"without any identity the name alone is known": {err: missing, node: "two", want: &fleet.Identity{Name: "two"}, byName: true},
		"the last good one is better than that":        {err: missing, last: &one, node: "one", want: &one},
		"a broken identity is no missing one":          {err: broken, node: "two"},
	} {
		t.Run(name, func(t *testing.T) {
			got := tell(c.found, c.err, c.last, c.node)
			assert.Equal(t, c.want, got.identity)
			assert.Equal(t, c.byName, got.nameOnly)
			if c.differs == "" {
				require.NoError(t, got.differs)
				return
			}
			require.ErrorContains(t, got.differs, c.differs)
			assert.Equal(t, sources.IdentityDiffers, sources.ReasonOf(got.differs))
		})
	}
}

func TestControlPlaneNodesHaveToAgree(t *testing.T) {
	node := func(name string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{clusterNameAnnotation: name}}}
	}
	assert.Empty(t, agreed(nil))
	assert.Equal(t, "one", agreed([]metav1.PartialObjectMetadata{node("one"), node("one")}))
	assert.Empty(t, agreed([]metav1.PartialObjectMetadata{node("one"), node("two")}))
	assert.Empty(t, agreed([]metav1.PartialObjectMetadata{node("one"), {}}), "one that has none yet")
	assert.Empty(t, agreed([]metav1.PartialObjectMetadata{{}, node("one")}))
}

func TestWorkersAreNeverAskedForTheNameOfTheCluster(t *testing.T) {
	scheme, err := newScheme()
	require.NoError(t, err)
	named := func(name, cluster string, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{clusterNameAnnotation: cluster}}}
	}
	c := ctrlfake.NewClientBuilder().WithScheme(scheme).WithObjects(named("worker", "evil", nil)).Build()
	nodes := &nodeNames{client: c}
	read := func() string {
		name, err := nodes.read(t.Context())
		require.NoError(t, err)
		return name
	}
	assert.Empty(t, read())
	require.NoError(t, c.Create(t.Context(), named("cp", "one", map[string]string{controlPlaneLabel: ""})))
	assert.Equal(t, "one", read())
}

func TestTheIdentityIsFollowed(t *testing.T) {
	clientset := fake.NewClientset()
	watching := make(chan struct{}, 10)
	clientset.PrependWatchReactor("configmaps", func(action clienttesting.Action) (bool, watch.Interface, error) {
		stream, err := clientset.Tracker().Watch(action.GetResource(), action.GetNamespace())
		watching <- struct{}{}
		return true, stream, err
	})
	client := clientset.CoreV1().ConfigMaps(Namespace)
	rung := make(chan struct{}, 10)
	w, err := newIdentityWatch(clientset, func() { rung <- struct{}{} })
	require.NoError(t, err)
	assert.Nil(t, w.read(), "before the API server answers")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx) }()
	<-watching
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: identityName}, Data: map[string]string{"identity.yaml": "x"}}
	_, err = client.Create(t.Context(), cm, metav1.CreateOptions{})
	require.NoError(t, err)
	<-rung
	require.NotNil(t, w.read())
	require.NoError(t, client.Delete(t.Context(), identityName, metav1.DeleteOptions{}))
	<-rung
	assert.Nil(t, w.read())
	cancel()
	require.NoError(t, <-ended)
}
