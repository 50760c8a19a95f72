package agent

import (
	"context"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// gentle is a limit on requests that opens for good: kubeadm, which brings the
// API server up, must have its turn. What renews the Lease and what looks whether
// to open is not under it, so that neither waits behind the others: see slowly.
type gentle struct {
	now   func() time.Time
	every time.Duration

	mu     sync.Mutex
	next   time.Time
	opened chan struct{}
}

// requestEvery leaves room for those that are not under the limit: together they
// are at most five in a second.
const requestEvery = 500 * time.Millisecond

func newGentle() *gentle {
	// The first second is that of the look for an endpoint, too.
	return &gentle{now: time.Now, every: requestEvery, next: time.Now().Add(requestEvery), opened: make(chan struct{})}
}

// slowly is a client's configuration for one request a second.
func slowly(config *rest.Config) *rest.Config {
	slow := rest.CopyConfig(config)
	slow.QPS, slow.Burst = 1, 1
	return slow
}

// open lets all through, also those that wait. It may be called once.
func (g *gentle) open() { close(g.opened) }

// reserve gives how long to wait for the next turn.
func (g *gentle) reserve() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if g.next.Before(now) {
		g.next = now
	}
	wait := g.next.Sub(now)
	g.next = g.next.Add(g.every)
	return wait
}

// Wait waits for a turn.
func (g *gentle) Wait(ctx context.Context) error {
	select {
	case <-g.opened:
		return nil
	default:
	}
	turn := time.NewTimer(g.reserve())
	defer turn.Stop()
	select {
	case <-g.opened:
		return nil
	case <-turn.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Accept waits without an end.
func (g *gentle) Accept() { _ = g.Wait(context.Background()) }

// TryAccept says yes only where nobody has to wait any more.
func (g *gentle) TryAccept() bool {
	select {
	case <-g.opened:
		return true
	default:
		return false
	}
}

// Stop has nothing to stop.
func (*gentle) Stop() {}

// wrap has watches wait for their turn, too: client-go lets them pass its limit.
func (g *gentle) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.URL.Query().Get("watch") == "true" {
			if err := g.Wait(request.Context()); err != nil {
				return nil, err
			}
		}
		return next.RoundTrip(request)
	})
}

// QPS is for the messages of client-go.
func (g *gentle) QPS() float32 { return float32(time.Second) / float32(g.every) }

var _ flowcontrol.RateLimiter = (*gentle)(nil)

// signs are what tells whether a cluster is still being born.
type signs struct {
	// kubernetes and kubeadm are that Service default/kubernetes and ConfigMap
	// kube-system/kubeadm-config are there.
	kubernetes, kubeadm bool
	// age is the cluster's, watched how long the agent has looked.
	age, watched time.Duration
}

// grown tells that there is no need to be gentle. Not every cluster is
// kubeadm's, so time counts too.
func (s signs) grown() bool {
	return (s.kubernetes && s.kubeadm) || s.age > time.Hour || s.watched >= 2*time.Minute
}

// birthWatch opens the limit.
type birthWatch struct {
	limit  *gentle
	client kubernetes.Interface
	every  time.Duration
}

func newBirthWatch(limit *gentle, config *rest.Config) (*birthWatch, error) {
	client, err := kubernetes.NewForConfig(slowly(config))
	return &birthWatch{limit, client, 5 * time.Second}, err
}

// Start looks until the cluster is grown.
func (b *birthWatch) Start(ctx context.Context) error {
	start := b.limit.now()
	for {
		if b.look(ctx, start).grown() {
			b.limit.open()
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(b.every):
		}
	}
}

// NeedLeaderElection is no: who waits is as gentle.
func (*birthWatch) NeedLeaderElection() bool { return false }

// look takes what can't be read for not there.
func (b *birthWatch) look(ctx context.Context, start time.Time) signs {
	now := b.limit.now()
	s := signs{watched: now.Sub(start)}
	core := b.client.CoreV1()
	if system, err := core.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{}); err == nil {
		s.age = now.Sub(system.CreationTimestamp.Time)
	}
	_, err := core.Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	s.kubernetes = err == nil
	_, err = core.ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	s.kubeadm = err == nil
	return s
}
