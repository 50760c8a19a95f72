package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/fleetling/fleetling/sources/fleet"
	"github.com/fleetling/fleetling/sources/trust"
)

func somePin() pin {
	return pin{
		Pin:      trust.Pin{Commit: strings.Repeat("a", 40), PayloadHash: strings.Repeat("b", 64), SignedAt: time.Unix(1_800_000_000, 0).UTC()},
		Signer:   trust.Signer{Name: "alice", Fingerprint: "SHA256:x"},
		Snapshot: "sha256:c", Listed: true,
		Selection: &fleet.Selection{
			Cluster: "one", ClusterSet: "prod", Listed: true, Digest: "sha256:s", Labels: []fleet.Label{{Key: "region", Value: "ap", Origin: fleet.OriginEntry}},
			AddOns: []fleet.AddOn{{Name: "web", Path: "addons/web", Timeout: time.Minute}},
		},
		Whole:    true,
		Identity: &fleet.Identity{Name: "one", ClusterSet: "prod", Labels: map[string]string{"region": "ap", "odd": "on"}},
	}
}

func TestAPinIsReadAsItWasWritten(t *testing.T) {
	store := &pins{client: fake.NewClientset().CoreV1().ConfigMaps(Namespace)}
	loaded, err := store.load(t.Context())
	require.NoError(t, err)
	assert.Nil(t, loaded, "there is none yet")
	require.NoError(t, store.save(t.Context(), somePin()))
	loaded, err = store.load(t.Context())
	require.NoError(t, err)
	if diff := cmp.Diff(somePin(), *loaded); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	bare := somePin()
	bare.Listed, bare.Identity, bare.Snapshot, bare.Selection, bare.Whole = false, nil, "", nil, false
	require.NoError(t, store.save(t.Context(), bare))
	loaded, err = store.load(t.Context())
	require.NoError(t, err)
	if diff := cmp.Diff(bare, *loaded); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPinThatSomebodyElseWroteIsNotOverwritten(t *testing.T) {
	client := fake.NewClientset().CoreV1().ConfigMaps(Namespace)
	one, two := &pins{client: client}, &pins{client: client}
	require.NoError(t, one.save(t.Context(), somePin()))
	err := two.save(t.Context(), somePin())
	assert.True(t, apierrors.IsAlreadyExists(err), "%v", err)
}

func TestAPinThatDoesNotParseIsAnErrorThatNamesIt(t *testing.T) {
	for name, spoil := range map[string]func(map[string]string){
		"no time":            func(d map[string]string) { delete(d, "signedAt") },
		"a short commit":     func(d map[string]string) { d["commit"] = "abc" },
		"no payload hash":    func(d map[string]string) { delete(d, "payloadHash") },
		"a broken selection": func(d map[string]string) { d["selection.json"] = "{" },
		"a broken identity":  func(d map[string]string) { d["identity.yaml"] = "name: [" },
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset().CoreV1().ConfigMaps(Namespace)
			require.NoError(t, (&pins{client: client}).save(t.Context(), somePin()))
			cm, err := client.Get(t.Context(), pinName, metav1.GetOptions{})
			require.NoError(t, err)
			spoil(cm.Data)
			_, err = client.Update(t.Context(), cm, metav1.UpdateOptions{})
			require.NoError(t, err)
			loaded, err := (&pins{client: client}).load(t.Context())
			assert.Nil(t, loaded)
			assert.ErrorContains(t, err, "ConfigMap/fleetling-system/fleetling-pin")
		})
	}
}
