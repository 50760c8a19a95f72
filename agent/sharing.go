package agent

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/fleetling/fleetling/agent/clusterset"
	"github.com/fleetling/fleetling/discovery/mcs"
	"github.com/fleetling/fleetling/discovery/record"
	"github.com/fleetling/fleetling/sources/fleet"
)

// sharing makes this cluster a member of its ClusterSet. It begins with the first
// signed list that names a registry: a fleet without one costs nothing.
type sharing struct {
	config Config
	mgr    manager.Manager
	core   typedv1.CoreV1Interface
	store  *clusterSetStore
	ranges *ownRanges
	peers  *peerWriter
	// restart ends the process gracefully.
	restart func()

	mu     sync.Mutex
	list   clusterset.List
	rung   chan struct{}
	status record.Status
	loop   *clusterset.Loop
}

// Start waits for a list, and then takes part until ctx ends.
func (s *sharing) Start(ctx context.Context) error {
	kept, err := s.store.load(ctx)
	if err != nil {
		return err
	}
	list, ok := s.first(ctx, kept.List)
	if !ok {
		return nil
	}
	key, err := memberKey(ctx, s.core.Secrets(Namespace))
	if err != nil {
		return err
	}
	uid, err := s.store.cluster(ctx)
	if err != nil {
		return err
	}
	s.peers.key = key.Public()
	var importer *mcs.Importer
	loop := clusterset.New(clusterset.Config{
		List: list, Memory: kept.Memory, UID: uid, Key: key,
		Open:    carriers{s.config}.open,
		Exports: func(ctx context.Context) ([]mcs.Share, error) { return importer.Exports(ctx) },
		Wake:    func(keys ...types.NamespacedName) { importer.Wake(keys...) },
		Ranges:  s.ranges.read, Save: s.store.save, Report: s.peers.report, Now: time.Now, Restart: s.restart,
	})
	importer = mcs.New(mcs.Config{
		Client: s.mgr.GetClient(), Cluster: list.Cluster, Peers: loop, Publisher: loop, Permitted: loop.Permitted,
		Events: s.mgr.GetEventRecorder("fleetling"), Now: time.Now,
	})
	if err := importer.SetupWithManager(ctx, s.mgr); err != nil {
		return err
	}
	if err := s.followNamespaces(ctx, loop); err != nil {
		return err
	}
	s.begin(loop)
	return loop.Start(ctx)
}

// NeedLeaderElection is yes: two agents would publish under one name.
func (*sharing) NeedLeaderElection() bool { return true }

// first waits for a list with a registry. What was kept is as good as a new one,
// and is there while Git is away.
func (s *sharing) first(ctx context.Context, kept clusterset.List) (clusterset.List, bool) {
	for {
		s.mu.Lock()
		list := s.list
		s.mu.Unlock()
		if list.ClusterSet == "" {
			list = kept
		}
		if list.Registry != nil {
			return list, true
		}
		select {
		case <-ctx.Done():
			return clusterset.List{}, false
		case <-s.rung:
		}
	}
}

// begin hands over what was told before there was a loop.
func (s *sharing) begin(loop *clusterset.Loop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loop = loop
	if s.list.ClusterSet != "" {
		loop.SetList(s.list)
	}
	loop.SetStatus(s.status)
}

// setFleet tells of a newly verified fleet file. It never blocks.
func (s *sharing) setFleet(f fleet.Fleet, cluster string) {
	list := listOf(f, cluster)
	s.mu.Lock()
	defer s.mu.Unlock()
	if reflect.DeepEqual(s.list, list) {
		return
	}
	s.list = list
	if s.loop != nil {
		s.loop.SetList(list)
		return
	}
	select {
	case s.rung <- struct{}{}:
	default:
	}
}

// setStatus tells how this cluster is doing. It never blocks.
func (s *sharing) setStatus(status record.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reflect.DeepEqual(s.status, status) {
		return
	}
	s.status = status
	if s.loop != nil {
		s.loop.SetStatus(status)
	}
}

// followNamespaces tells the loop which namespaces are here.
func (s *sharing) followNamespaces(ctx context.Context, loop *clusterset.Loop) error {
	informer, err := s.mgr.GetCache().GetInformer(ctx, &corev1.Namespace{})
	if err != nil {
		return fmt.Errorf("watch namespaces: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if namespace, ok := object.(*corev1.Namespace); ok {
				loop.SetNamespace(namespace.Name, true)
			}
		},
		DeleteFunc: func(object any) {
			if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if namespace, ok := object.(*corev1.Namespace); ok {
				loop.SetNamespace(namespace.Name, false)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch namespaces: %w", err)
	}
	return nil
}
