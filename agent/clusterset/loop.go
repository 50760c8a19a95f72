package clusterset

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/mcs"
	"github.com/fleetling/fleetling/discovery/peer"
	"github.com/fleetling/fleetling/discovery/record"
)

// Carrier is a carrier that has to be closed.
type Carrier interface {
	discovery.Carrier
	io.Closer
}

// Config is what a Loop needs. All fields are required.
type Config struct {
	// List is the newest that is known, with a registry; Memory is that of the run
	// before.
	List   List
	Memory peer.Memory
	// UID is that of the kube-system namespace.
	UID string
	Key record.Key
	// Open makes the carrier of a registry for a member.
	Open func(registry Registry, member string) (Carrier, error)
	// Exports are this cluster's own.
	Exports func(ctx context.Context) ([]mcs.Share, error)
	// Ranges are this cluster's own node, pod and service ranges.
	Ranges func(ctx context.Context) ([]netip.Prefix, error)
	// Wake has the importer look at these Services again.
	Wake func(keys ...types.NamespacedName)
	// Save keeps what has to survive a restart.
	Save func(ctx context.Context, kept Kept) error
	// Report tells of what has changed; an error has it told again.
	Report func(ctx context.Context, report Report) error
	Now    func() time.Time
	// Restart is called when only a fresh start can follow a new list: another
	// registry, or another name of this cluster.
	Restart func()
}

// Loop is the one goroutine. Its other methods may be called from anywhere.
type Loop struct {
	config Config
	inbox  *inbox

	// mu guards what the importer reads while the loop is at work.
	mu        sync.Mutex
	list      List
	peers     *peer.Peers
	published map[types.NamespacedName]discovery.Digest

	// next is a list that can't be followed before it is kept.
	next    *List
	carrier Carrier
	// again are heads whose record could not be got.
	again  map[string]discovery.Head
	watch  *watching
	timing peer.Timing
	own    own
	due    due
	seen   seen
}

// due says when to do what next.
type due struct {
	poll, renew, publish, status, ranges, keep time.Time
}

// seen is what the report is made of.
type seen struct {
	// unread is why the carrier could not be asked, unpublished why what we have to
	// say is not in it.
	unread, unpublished error
	// left is what of the own exports no record can hold.
	left error
	// doubts are why the newest state of some members can't be read.
	doubts  map[string]error
	touched map[string]bool
	all     bool
	events  []peer.Event
	// reported is the last report that was taken, and views the last one of each.
	reported Report
	views    map[string]peer.View
	ranges   []netip.Prefix
	revision uint64
	listed   bool // the list has to be kept
}

// New makes a Loop that does nothing until Start.
func New(config Config) *Loop {
	list := config.List
	self := peer.Self{ClusterSet: list.ClusterSet, Name: list.Cluster, UID: config.UID, Key: config.Key.Public()}
	return &Loop{
		config: config, inbox: newInbox(), list: list, timing: list.timing(), peers: peer.New(self, list.timing(), config.Memory),
		again: map[string]discovery.Head{}, published: map[types.NamespacedName]discovery.Digest{}, seen: seen{touched: map[string]bool{}, views: map[string]peer.View{}},
	}
}

const (
	// settle lets several changes become one record.
	settle = 50 * time.Millisecond
	// exchange bounds one exchange with the carrier.
	exchange = 30 * time.Second
	// rangesEvery is how often own ranges are read.
	rangesEvery = 5 * time.Minute
	// keepEvery is how often it is kept what the peers have brought. It is longer
	// than any poll, so that a round follows by itself.
	keepEvery = 10 * time.Second
)

// Start runs until ctx ends.
func (l *Loop) Start(ctx context.Context) error {
	defer l.close()
	l.apply(l.config.List)
	for {
		wait := l.round(ctx)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		case <-l.inbox.rung:
			timer.Stop()
			rest(ctx, settle)
		}
	}
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// open makes the carrier, unless there is one.
func (l *Loop) open(ctx context.Context) error {
	if l.carrier != nil {
		return nil
	}
	carrier, err := l.config.Open(*l.list.Registry, l.list.Cluster)
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	l.carrier = carrier
	if watcher, ok := carrier.(discovery.Watcher); ok {
		l.watch = follow(ctx, watcher, l.head)
	}
	return nil
}

// apply gives the peers a list.
func (l *Loop) apply(list List) {
	l.mu.Lock()
	l.list = list
	l.peers.SetPolicy(list.Policy)
	out := l.peers.SetList(list.Entries, list.Acknowledged)
	services := l.peers.Services()
	l.mu.Unlock()
	l.seen.all, l.seen.listed = true, true
	l.own.dirty = true // another policy may allow other exports
	l.seen.events = append(l.seen.events, out.Events...)
	l.config.Wake(keys(services)...)
	l.config.Wake(keys(out.Changed)...)
}

func (l *Loop) close() {
	if l.watch != nil {
		l.watch.stop()
		l.watch = nil
	}
	if l.carrier != nil {
		_ = l.carrier.Close()
		l.carrier = nil
	}
}

// watching is a watch and the goroutine that waits in it.
type watching struct {
	cancel context.CancelFunc
	group  *errgroup.Group
}

func follow(ctx context.Context, watcher discovery.Watcher, changed func(discovery.Head)) *watching {
	ctx, cancel := context.WithCancel(ctx)
	w := &watching{cancel: cancel, group: &errgroup.Group{}}
	w.group.Go(func() error { return watcher.Watch(ctx, changed) })
	return w
}

func (w *watching) stop() {
	w.cancel()
	_ = w.group.Wait()
}

func keys(services []peer.Service) []types.NamespacedName {
	all := make([]types.NamespacedName, 0, len(services))
	for _, s := range services {
		all = append(all, types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
	}
	return all
}
