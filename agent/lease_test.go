package agent

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func TestWritesNeedAFreshLease(t *testing.T) {
	now := noon
	f := &fence{now: func() time.Time { return now }}
	sent := 0
	client := f.wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		sent++
		return httptest.NewRecorder().Result(), nil
	}))
	try := func(method string) error {
		response, err := client.RoundTrip(httptest.NewRequestWithContext(t.Context(), method, "/api/v1/namespaces/shop/configmaps/a", strings.NewReader("")))
		if err == nil {
			require.NoError(t, response.Body.Close())
		}
		return err
	}
	assert.ErrorIs(t, try(http.MethodPatch), errNotLeader, "before the first renewal")
	assert.NoError(t, try(http.MethodGet), "reads pass")
	f.renew()
	now = now.Add(renewDeadline)
	assert.NoError(t, try(http.MethodPatch), "at the deadline")
	now = now.Add(time.Nanosecond)
	for _, method := range []string{http.MethodPatch, http.MethodPost, http.MethodPut, http.MethodDelete} {
		assert.ErrorIs(t, try(method), errNotLeader, method)
	}
	f.renew()
	assert.NoError(t, try(http.MethodDelete), "renewed again")
	assert.Equal(t, 3, sent)
}

func TestEveryWriteOfTheLeaseRenewsButOneThatGivesItUp(t *testing.T) {
	now := noon
	f := &fence{now: func() time.Time { return now }}
	fresh := func() bool { return !f.expired() }
	client := fake.NewClientset()
	lock := &fencedLock{fence: f, Interface: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: Namespace, Name: leaseName}, Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: "a"},
	}}
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 15}
	require.Error(t, lock.Update(t.Context(), record), "there is no Lease yet")
	assert.False(t, fresh(), "a failed write renews nothing")
	require.NoError(t, lock.Create(t.Context(), record))
	assert.True(t, fresh())
	now = now.Add(time.Hour)
	require.NoError(t, lock.Update(t.Context(), record))
	assert.True(t, fresh())
	record.HolderIdentity = ""
	require.NoError(t, lock.Update(t.Context(), record))
	assert.False(t, fresh(), "given up")
}
