package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/http/httpproxy"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/agent/desired"
	"github.com/fleetling/fleetling/agent/probe"
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
	// Hostname is shown in this agent's name in the Lease.
	Hostname string
	// APIServer is the URL of the API server, and NodeIP the address of the node
	// that this process runs on; each may be "". With a NodeIP the cluster may just
	// be being born: see birth.
	APIServer, NodeIP string
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
	follow := newFollower(nil, o.ConfigFile)
	if err := o.readConfig(); err != nil {
		return err
	}
	vitals := newVitals(patienceFor(o.config))
	probes, err := probe.Listen(o.config.DataDir, probe.Checks{Live: vitals.live, Ready: vitals.ready})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return probes.Serve(ctx) })
	group.Go(func() error {
		defer stop(nil)
		return o.run(ctx, vitals, follow, func() { stop(ErrConfigChanged) })
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if errors.Is(context.Cause(ctx), ErrConfigChanged) {
		return ErrConfigChanged
	}
	return nil
}

// run is the part of Run that probes are answered about.
func (o Options) run(ctx context.Context, vitals *vitals, follow *follower, restart func()) error {
	if err := o.reach(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	fence := &fence{now: time.Now}
	fenced, election := rest.CopyConfig(o.REST), o.REST
	runnables := []manager.Runnable{follow}
	if o.NodeIP != "" {
		birth, err := newBirthWatch(newGentle(), o.REST)
		if err != nil {
			return err
		}
		fenced.RateLimiter, election = birth.limit, slowly(o.REST)
		fenced.Wrap(birth.limit.wrap)
		runnables = append(runnables, birth)
	}
	if o.LeaderElect {
		fenced.Wrap(fence.wrap)
	}
	mgr, err := newManager(o, fenced, election, scheme, fence, vitals)
	if err != nil {
		return err
	}
	if err := assemble(ctx, o, mgr, fenced, vitals, restart); err != nil {
		return err
	}
	follow.changed = o.onConfig(eventWriter{mgr.GetEventRecorder("fleetling")}, restart)
	for _, runnable := range runnables {
		if err := mgr.Add(runnable); err != nil {
			return err
		}
	}
	return mgr.Start(ctx)
}

// onConfig ends the agent where the next process can read the configuration, and
// says so where it can't: an agent that does not come up again could not be
// mended by Git.
func (o Options) onConfig(tell eventWriter, restart func()) func() {
	return func() {
		if _, err := ReadConfig(o.ConfigFile); err != nil {
			o.Log.Error(err, "the new configuration is refused, the one before goes on")
			tell.configRefused(err)
			return
		}
		restart()
	}
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

func newManager(o Options, fenced, election *rest.Config, scheme *runtime.Scheme, fence *fence, vitals *vitals) (manager.Manager, error) {
	holder, err := holderName(o.Hostname, o.config.DataDir)
	if err != nil {
		return nil, err
	}
	lock, err := newLock(election, holder, fence)
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
	return mgr, errors.Join(
		mgr.AddHealthzCheck("loops", func(*http.Request) error { return vitals.live() }),
		mgr.AddReadyzCheck("planned", func(*http.Request) error { return vitals.ready() }),
	)
}

// cached are the kinds of which the caches hold less than all. A kind costs
// nothing until it is asked for.
func cached() map[client.Object]cache.ByObject {
	kinds := mcs.CacheOptions()
	node, controlPlane := controlPlaneNodes()
	kinds[node] = controlPlane
	kinds[&corev1.ConfigMap{}] = cache.ByObject{Namespaces: map[string]cache.Config{
		Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", pinName)},
	}}
	return kinds
}

// assemble makes the loops and what wakes them.
func assemble(ctx context.Context, o Options, mgr manager.Manager, fenced *rest.Config, vitals *vitals, restart func()) error {
	clientset, err := kubernetes.NewForConfig(fenced)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	core := clientset.CoreV1()
	metrics, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return err
	}
	look, pass := newBell(), newBell()
	uid := clusterUID(core)
	keeper := &keeper{pins: &pins{client: core.ConfigMaps(Namespace)}, snapshots: snapshots{core.Secrets(Namespace)}, cluster: uid}
	identity, err := newIdentityWatch(clientset, look.ring)
	if err != nil {
		return fmt.Errorf("watch the identity: %w", err)
	}
	nodes := &nodeNames{client: mgr.GetClient()}
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
		config: o.config, mgr: mgr, core: core, store: &clusterSetStore{core.ConfigMaps(Namespace), uid},
		ranges: &ownRanges{mgr.GetAPIReader()}, peers: &peerWriter{status: status(), board: board, posted: pass.ring},
		restart: restart, rung: make(chan struct{}, 1),
	}
	source := &sourceLoop{
		config: o.config, keeper: keeper, board: board, members: mgr.GetClient(), metrics: metrics, pace: newPace(o.config.Interval),
		posted: pass.ring, listed: share.setFleet, turn: &sync.Mutex{}, rest: &atRest{giveBack: debug.FreeOSMemory},
		identity: identity.read, nodes: nodes.read,
		pipeline: &desired.Pipeline{
			Fetcher: git.Fetch, Remote: o.config.Remote, DataDir: o.config.DataDir,
			Signers: o.config.Trust.Signers, Commit: o.config.Trust.Commit, Revoked: o.config.Trust.Revoked,
			Renderer: render.New(o.config.Remote.Limits),
		},
	}
	passes := &passLoop{keeper: keeper, board: board, engine: engine, metrics: metrics, told: share.setStatus, status: status()}
	return errors.Join(
		addLoop(mgr, "source", vitals.looking(source, board), look, onReconcileAt(mgr.GetCache())),
		addLoop(mgr, "pass", vitals.of("pass", passes), pass, onPause(mgr.GetCache())),
		mgr.Add(newRehearsal(mgr.Elected(), source, vitals)),
		mgr.Add(share),
		mgr.Add(leaderOnly(func(ctx context.Context) error { <-ctx.Done(); engine.Close(); return nil })),
		mgr.Add(newFollower(look.ring, o.config.Identity)),
		mgr.Add(identity),
		onPinDeleted(ctx, mgr.GetCache(), func() { keeper.forget(); look.ring() }),
	)
}

// clusterUID reads once what tells this cluster from all others.
func clusterUID(core typedv1.CoreV1Interface) func(context.Context) (string, error) {
	var mu sync.Mutex
	uid := ""
	return func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if uid != "" {
			return uid, nil
		}
		system, err := core.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("who this cluster is: %w", err)
		}
		uid = string(system.UID)
		return uid, nil
	}
}

// leaderOnly is a part that runs while this agent leads.
type leaderOnly func(context.Context) error

// Start runs it.
func (f leaderOnly) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection says so.
func (leaderOnly) NeedLeaderElection() bool { return true }
