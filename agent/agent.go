package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/http/httpproxy"
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
	"github.com/fleetling/fleetling/discovery/mcs"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/render"
)

// Options are what main knows.
type Options struct {
	// ConfigFile is read once; a change of it ends Run.
	ConfigFile string
	// DataDir replaces that of the configuration where it is not empty.
	DataDir string
	// Proxy is for https.
	Proxy httpproxy.Config
	REST  *rest.Config
	Log   logr.Logger
	// Hostname is part of this agent's name in the Lease: stable over a restart
	// of the process, and another one in another Pod.
	Hostname string
	// LeaderElect off is for one agent that nobody else can join.
	LeaderElect bool

	config Config
}

// ErrConfigChanged ends Run without a fault: the next process reads the new
// configuration.
var ErrConfigChanged = errors.New("the configuration has changed")

// Run is the daemon. It returns nil when ctx ends and all has stopped.
func Run(ctx context.Context, o Options) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	follow := newFollower(func() { stop(ErrConfigChanged) }, o.ConfigFile)
	if err := o.readConfig(); err != nil {
		return err
	}
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
	if err := assemble(ctx, o, mgr, fenced, func() { stop(ErrConfigChanged) }); err != nil {
		return err
	}
	if err := mgr.Add(follow); err != nil {
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

func (o *Options) readConfig() error {
	config, err := ReadConfig(o.ConfigFile)
	if err != nil {
		return err
	}
	config.DataDir = cmp.Or(o.DataDir, config.DataDir)
	config.Remote.Proxy = o.Proxy
	if err := os.MkdirAll(config.DataDir, 0o700); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	o.config = config
	return nil
}

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(scheme.AddToScheme(s), v1alpha1.AddToScheme(s), mcs.AddToScheme(s))
}

func newManager(o Options, fenced *rest.Config, scheme *runtime.Scheme, fence *fence) (manager.Manager, error) {
	lock, err := newLock(o.REST, o.Hostname+"/"+o.config.DataDir, fence)
	if err != nil {
		return nil, err
	}
	lease, renew, retry := leaseDuration, renewDeadline, retryPeriod
	mgr, err := manager.New(fenced, manager.Options{
		Scheme: scheme, Logger: o.Log,
		LeaderElection: o.LeaderElect, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &lease, RenewDeadline: &renew, RetryPeriod: &retry,
		Metrics: metricsserver.Options{BindAddress: o.config.Metrics}, HealthProbeBindAddress: o.config.Health,
		Cache: cache.Options{ByObject: cached()},
	})
	if err != nil {
		return nil, fmt.Errorf("set up: %w", err)
	}
	return mgr, errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping))
}

// cached are the kinds of which the caches hold less than all. A kind costs
// nothing until it is asked for.
func cached() map[client.Object]cache.ByObject {
	kinds := mcs.CacheOptions()
	kinds[&corev1.ConfigMap{}] = cache.ByObject{Namespaces: map[string]cache.Config{
		Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", pinName)},
	}}
	return kinds
}

// assemble makes the loops and what wakes them.
func assemble(ctx context.Context, o Options, mgr manager.Manager, fenced *rest.Config, restart func()) error {
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
	status := func() *statusWriter {
		return &statusWriter{
			client: mgr.GetClient(), config: o.config, metrics: metrics,
			events: eventWriter{mgr.GetEventRecorder("fleetling")}, wrote: map[string]statusObject{},
		}
	}
	share := &sharing{
		config: o.config, mgr: mgr, core: core, store: &clusterSetStore{core.ConfigMaps(Namespace)},
		ranges: &ownRanges{mgr.GetAPIReader()}, peers: &peerWriter{status: status(), board: board, posted: pass.ring},
		restart: restart, rung: make(chan struct{}, 1),
	}
	source := &sourceLoop{
		config: o.config, keeper: keeper, board: board, members: mgr.GetClient(), metrics: metrics, pace: newPace(o.config.Interval),
		posted: pass.ring, listed: share.setFleet,
		pipeline: &desired.Pipeline{
			Fetcher: git.Fetch, Remote: o.config.Remote, DataDir: o.config.DataDir,
			Signers: o.config.Trust.Signers, Commit: o.config.Trust.Commit, Revoked: o.config.Trust.Revoked,
			Renderer: render.New(o.config.Remote.Limits),
		},
	}
	passes := &passLoop{keeper: keeper, board: board, engine: engine, metrics: metrics, told: share.setStatus, status: status()}
	return errors.Join(
		addLoop(mgr, "source", source, look, onReconcileAt(mgr.GetCache())),
		addLoop(mgr, "pass", passes, pass, nil),
		mgr.Add(share),
		mgr.Add(leaderOnly(func(ctx context.Context) error { <-ctx.Done(); engine.Close(); return nil })),
		mgr.Add(newFollower(look.ring, o.config.Identity)),
		onPinDeleted(ctx, mgr.GetCache(), func() { keeper.forget(); look.ring() }),
	)
}

// leaderOnly is a part that runs while this agent leads.
type leaderOnly func(context.Context) error

// Start runs it.
func (f leaderOnly) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection says so.
func (leaderOnly) NeedLeaderElection() bool { return true }
