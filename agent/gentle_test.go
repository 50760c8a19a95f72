package agent

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// passed counts the requests of eight clients that want to go at once, until
// stop.
func passed(ctx context.Context, g *gentle) *int {
	n := new(int)
	turns := make(chan struct{})
	for range 8 {
		go func() {
			for g.Wait(ctx) == nil {
				select {
				case turns <- struct{}{}:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	go func() {
		for {
			select {
			case <-turns:
				*n++
			case <-ctx.Done():
				return
			}
		}
	}()
	return n
}

func TestC2FewRequestsUntilKubeadmIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", CreationTimestamp: metav1.Now()}},
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}})
		limit := newGentle()
		ended := make(chan error, 1)
		go func() { ended <- (&birthWatch{limit, client, 5 * time.Second}).Start(t.Context()) }()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		n := passed(ctx, limit)
		<-ctx.Done()
		stop()
		synctest.Wait()
		assert.LessOrEqual(t, *n, 120, "at most five a second with the Lease and the looks")
		assert.Greater(t, *n, 100, "and yet it goes on")
		assert.Empty(t, ended)
		assert.False(t, limit.TryAccept())

		_, err := client.CoreV1().ConfigMaps("kube-system").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kubeadm-config"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, <-ended)
		assert.True(t, limit.TryAccept())
	})
}

func TestWhoeverWaitsGoesWhenTheLimitOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := newGentle()
		limit.every = time.Hour
		limit.Accept()
		gone := make(chan struct{})
		go func() { limit.Accept(); close(gone) }()
		synctest.Wait()
		assert.NotNil(t, gone)
		start := time.Now()
		limit.open()
		<-gone
		assert.Equal(t, start, time.Now())

		short, cancel := context.WithCancel(t.Context())
		cancel()
		other := newGentle()
		other.every = time.Hour
		other.Accept()
		assert.ErrorIs(t, other.Wait(short), context.Canceled)
	})
}

func TestAWatchWaitsForItsTurnToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, start := newGentle(), time.Now()
		send := limit.wrap(roundTripper(func(*http.Request) (*http.Response, error) { return nil, nil })) //nolint:nilnil // nobody looks at it
		for _, c := range []struct {
			url  string
			turn time.Duration
		}{{"/api/v1/nodes", 0}, {"/api/v1/nodes?watch=true", requestEvery}, {"/api/v1/nodes?watch=true", 2 * requestEvery}} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, nil)
			require.NoError(t, err)
			_, err = send.RoundTrip(request)
			require.NoError(t, err)
			assert.Equal(t, c.turn, time.Since(start), c.url)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		request, err := http.NewRequestWithContext(ended, http.MethodGet, "/?watch=true", nil)
		require.NoError(t, err)
		_, err = send.RoundTrip(request)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestWhenAClusterIsGrown(t *testing.T) {
	for name, c := range map[string]struct {
		signs signs
		want  bool
	}{
		"nothing is there yet":                       {signs{}, false},
		"the API server alone":                       {signs{kubernetes: true}, false},
		"kubeadm's upload without the first Service": {signs{kubeadm: true}, false},
		"both":                                  {signs{kubernetes: true, kubeadm: true}, true},
		"an old cluster, whoever made it":       {signs{age: 2 * time.Hour}, true},
		"a young one that is not kubeadm's":     {signs{kubernetes: true, age: 10 * time.Minute, watched: time.Minute}, false},
		"and the same when there was time":      {signs{kubernetes: true, age: 10 * time.Minute, watched: 2 * time.Minute}, true},
		"a cluster whose first Service is lost": {signs{kubeadm: true, watched: 2 * time.Minute}, true},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.signs.grown()) })
	}
}
