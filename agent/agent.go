package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/agent/desired"
	"github.com/fleetling/fleetling/apply"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/render"
)

// Options are what main knows.
type Options struct {
	// ConfigFile was read into Config; a change of it ends Run.
	ConfigFile string
	Config     Config
	REST       *rest.Config
	Log        logr.Logger
	// Holder is this agent's name in the Lease, stable over a restart of the
	// process. LeaderElect off is for one agent that nobody else can join.
	Holder      string
	LeaderElect bool
}

// ErrConfigChanged ends Run without a fault: the next process reads the new
// configuration.
var ErrConfigChanged = errors.New("the configuration has changed")

// Run is the daemon. It returns nil when ctx ends and all has stopped.
func Run(ctx context.Context, o Options) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	fence := &fence{now: time.Now}
	fenced := rest.CopyConfig(o.REST)
	if o.LeaderElect {
		fenced.Wrap(fence.wrap)
	}
	mgr, err := newManager(o, fenced, scheme, fence)
	if err != nil {
		return err
	}
	if err := assemble(ctx, o, mgr, fenced); err != nil {
		return err
	}
	if err := mgr.Add(&follower{paths: []string{o.ConfigFile}, changed: func() { stop(ErrConfigChanged) }}); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return err
	}
	if errors.Is(context.Cause(ctx), ErrConfigChanged) {
		return ErrConfigChanged
	}
	return nil
}

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(scheme.AddToScheme(s), v1alpha1.AddToScheme(s))
}

func newManager(o Options, fenced *rest.Config, scheme *runtime.Scheme, fence *fence) (manager.Manager, error) {
	lock, err := newLock(o.REST, o.Holder, fence)
	if err != nil {
		return nil, err
	}
	lease, renew, retry := leaseDuration, renewDeadline, retryPeriod
	mgr, err := manager.New(fenced, manager.Options{
		Scheme: scheme, Logger: o.Log,
		LeaderElection: o.LeaderElect, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &lease, RenewDeadline: &renew, RetryPeriod: &retry,
		Metrics: metricsserver.Options{BindAddress: o.Config.Metrics}, HealthProbeBindAddress: o.Config.Health,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", pinName)}}},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("set up: %w", err)
	}
	return mgr, errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping))
}

// assemble makes the two loops and what wakes them.
func assemble(ctx context.Context, o Options, mgr manager.Manager, fenced *rest.Config) error {
	core, err := typedv1.NewForConfig(fenced)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	metrics, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return err
	}
	look, pass := newBell(), newBell()
	keeper := &keeper{pins: &pins{client: core.ConfigMaps(Namespace)}, snapshots: snapshots{core.Secrets(Namespace)}}
	board := &board{}
	engine, err := apply.New(ctx, apply.Config{REST: fenced, Namespace: Namespace, Changed: pass.ring, Now: time.Now})
	if err != nil {
		return err
	}
	source := &sourceLoop{
		config: o.Config, keeper: keeper, board: board, members: mgr.GetClient(), metrics: metrics, pace: newPace(o.Config.Interval), posted: pass.ring,
		pipeline: &desired.Pipeline{
			Fetcher: git.Fetch, Remote: o.Config.Remote, DataDir: o.Config.DataDir,
			Signers: o.Config.Trust.Signers, Commit: o.Config.Trust.Commit, Revoked: o.Config.Trust.Revoked,
			Renderer: render.New(o.Config.Remote.Limits),
		},
	}
	passes := &passLoop{keeper: keeper, board: board, engine: engine, metrics: metrics, status: &statusWriter{
		client: mgr.GetClient(), config: o.Config, metrics: metrics,
		events: eventWriter{mgr.GetEventRecorder("fleetling")}, wrote: map[string]statusObject{},
	}}
	return errors.Join(
		addLoop(mgr, "source", source, look, onReconcileAt(mgr.GetCache())),
		addLoop(mgr, "pass", passes, pass, nil),
		mgr.Add(leaderOnly(func(ctx context.Context) error { <-ctx.Done(); engine.Close(); return nil })),
		mgr.Add(&follower{paths: []string{o.Config.Identity}, changed: look.ring}),
		onPinDeleted(ctx, mgr.GetCache(), func() { keeper.forget(); look.ring() }),
	)
}

// leaderOnly is a part that runs while this agent leads.
type leaderOnly func(context.Context) error

// Start runs it.
func (f leaderOnly) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection says so.
func (leaderOnly) NeedLeaderElection() bool { return true }
