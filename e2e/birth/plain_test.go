package birth_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/e2e/birth"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/world"
)

// What manifest folders of distributions get: the same objects, without Cluster
// API. A folder may be applied again and again.
func TestThePlainObjectsGiveBirthWithoutClusterAPI(t *testing.T) {
	release, err := harness.Places(t.Context(), 1)
	require.NoError(t, err)
	t.Cleanup(release)
	s := newFleetScenario(t)
	s.startWorkload()
	first := s.push("first")
	plain := s.render("--plain", name)
	s.do(birth.Apply(t.Context(), s.workload.Client, plain...))
	s.giveCredentials()
	s.startAgent()
	s.do(s.workload.Ready(t.Context(), first))
	s.has("region", "ap-south")
	s.do(s.kubelet.Pod().Probes(s.Context()))

	before := s.versions(s.workload.Client, plain)
	s.do(birth.Apply(t.Context(), s.workload.Client, plain...))
	s.do(s.workload.Reconcile(t.Context()))
	assert.Equal(t, before, s.versions(s.workload.Client, plain))
	assert.Len(t, s.kubelet.Pod().Started(), 1)
}

// giveCredentials makes the Secret by hand: `--plain` prints none.
func (s *scenario) giveCredentials() {
	s.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: "fleetling-git"}, Data: map[string][]byte{}}
	for _, file := range []string{"username", "password", "ca.crt"} {
		content, err := os.ReadFile(filepath.Join(s.credentials, "git", file))
		s.do(err)
		secret.Data[file] = content
	}
	s.do(s.workload.Client.Create(s.Context(), secret, &client.CreateOptions{}))
}
