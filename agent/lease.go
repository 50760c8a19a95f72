package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Times of the Lease (client-go's own defaults).
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// leaseName is the name of the Lease.
const leaseName = "fleetling"

// errNotLeader refuses a write.
var errNotLeader = errors.New("not sent: the lease was not renewed in time, another agent may be at work")

// fence refuses writes once the last renewal of the Lease is older than the
// renew deadline: a process that was stopped for a while and wakes up must not
// finish what another one has taken over. Reads pass.
type fence struct {
	now     func() time.Time
	renewed atomic.Int64 // Unix nanoseconds; 0 is never
}

func (f *fence) renew() { f.renewed.Store(f.now().UnixNano()) }

func (f *fence) expired() bool { return f.now().Sub(time.Unix(0, f.renewed.Load())) > renewDeadline }

// wrap puts the fence into a client's transport.
func (f *fence) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodGet && f.expired() {
			return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, errNotLeader)
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// fencedLock is a Lease whose every successful write is a renewal.
type fencedLock struct {
	resourcelock.Interface
	fence *fence
}

// newLock makes the lock. holder is stable over a process restart, so that a
// crash costs no lease time: the new process renews what the old one held.
func newLock(config *rest.Config, holder string, f *fence) (resourcelock.Interface, error) {
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, Namespace, leaseName,
		resourcelock.ResourceLockConfig{Identity: holder}, config, renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	return &fencedLock{Interface: lock, fence: f}, nil
}

// Create makes the Lease.
func (l *fencedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.written(record, l.Interface.Create(ctx, record))
}

// Update renews it, takes it, or gives it up.
func (l *fencedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.written(record, l.Interface.Update(ctx, record))
}

func (l *fencedLock) written(record resourcelock.LeaderElectionRecord, err error) error {
	switch {
	case err != nil:
	case record.HolderIdentity == "":
		l.fence.renewed.Store(0)
	default:
		l.fence.renew()
	}
	return err
}
