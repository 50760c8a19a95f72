package mcs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/record"
)

// Peers is what the other members share, as far as it has been judged good.
type Peers interface {
	// Shares are those of one Service.
	Shares(key types.NamespacedName) []Share
	// Settled is that it means something if a cluster has no share of a Service.
	// Until then what is here of it stays.
	Settled(cluster string, key types.NamespacedName) bool
	// Names are the Services of a namespace that any peer exports.
	Names(namespace string) []string
}

// Publisher carries this member's exports to its peers.
type Publisher interface {
	// Published is that the peers can read this export as it is.
	Published(key types.NamespacedName, export record.Export) bool
	// Changed is called when what Exports returns has changed. It must not block.
	Changed()
}

// Config is what an Importer needs. All fields are required but Permitted.
type Config struct {
	// Client reads from caches that CacheOptions describes.
	Client client.Client
	// Cluster is this member's name.
	Cluster   string
	Peers     Peers
	Publisher Publisher
	// Permitted says whether this member may export from a namespace; nil is yes.
	Permitted func(namespace string) bool
	Events    events.EventRecorder
	Now       func() time.Time
}

// Importer keeps a cluster's ServiceImports, with all that belongs to them, and
// the conditions of its ServiceExports.
type Importer struct {
	config Config

	mu sync.Mutex
	// exported are digests of the own shares as last seen.
	exported map[types.NamespacedName]discovery.Digest
	// queue is nil until the controller runs; early is what came before.
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	early map[types.NamespacedName]bool
}

// New makes an Importer that does nothing yet: SetupWithManager makes it run.
func New(config Config) *Importer {
	return &Importer{config: config, exported: map[types.NamespacedName]discovery.Digest{}, early: map[types.NamespacedName]bool{}}
}

// errNotOurs is that an object stands where one of ours belongs.
var errNotOurs = errors.New("not made by fleetling, and left alone; delete or rename it")

// Reconcile makes one Service of the ClusterSet in this cluster what its exports
// say. The request's name is that of the Service.
func (i *Importer) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	key := request.NamespacedName
	seen, err := i.look(ctx, key)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("import %s: %w", key, err)
	}
	own, invalid := i.own(seen.local)
	i.note(key, own)
	if !seen.namespace {
		return reconcile.Result{}, nil
	}
	p := i.plan(key, seen, own)
	err = i.write(ctx, seen, p)
	if errors.Is(err, errNotOurs) {
		// Its watch tells when it goes: trying again would not help.
		err = reconcile.TerminalError(err)
	}
	if failed := i.report(ctx, seen.export, own, invalid, p); failed != nil {
		err = failed
	}
	if err == nil && p.held() {
		// What becomes known of a Service that nobody exports any more wakes nobody.
		return reconcile.Result{RequeueAfter: heldAgain}, nil
	}
	return reconcile.Result{}, err
}

// plan is what is wanted of one Service.
type plan struct {
	wanted Import
	// unknown are clusters that have a part in what is here, and of which it is not
	// known whether they still export: nothing that they may have a part in is
	// changed or removed.
	unknown map[string]bool
}

// heldAgain is when to look again at what is held. It costs reads of caches.
const heldAgain = 5 * time.Second

func (p plan) held() bool { return len(p.unknown) > 0 }

func (i *Importer) plan(key types.NamespacedName, seen scene, own *Share) plan {
	shares := slices.Clone(i.config.Peers.Shares(key))
	unknown := i.unknown(key, seen, shares)
	if own != nil {
		shares = append(shares, *own)
	}
	if len(unknown) > 0 && seen.imported.ResourceVersion != "" {
		shares = append(shares, standing(seen.imported))
	}
	return plan{wanted: Merge(shares), unknown: unknown}
}

// unknown looks only at clusters that have a part in what is here: one of the
// list that never was heard of holds nothing up.
func (i *Importer) unknown(key types.NamespacedName, seen scene, shares []Share) map[string]bool {
	unknown := map[string]bool{}
	take := func(cluster string) {
		shared := cluster == i.config.Cluster || slices.ContainsFunc(shares, func(s Share) bool { return s.Cluster == cluster })
		if !shared && !i.config.Peers.Settled(cluster, key) {
			unknown[cluster] = true
		}
	}
	for _, c := range seen.imported.Status.Clusters {
		take(c.Cluster)
	}
	for j := range seen.ours {
		take(seen.ours[j].Labels[v1beta1.LabelSourceCluster])
	}
	return unknown
}

// standing stands for the exports that are not known: the ServiceImport says what
// they came to. It wins, so that ports keep their meaning.
func standing(imported *v1beta1.ServiceImport) Share {
	e := record.Export{Namespace: imported.Namespace, Name: imported.Name, Type: string(imported.Spec.Type), TrafficDistribution: valueOf(imported.Spec.TrafficDistribution)}
	for _, family := range imported.Spec.IPFamilies {
		e.IPFamilies = append(e.IPFamilies, string(family))
	}
	for _, p := range imported.Spec.Ports {
		e.Ports = append(e.Ports, record.Port{Name: p.Name, Protocol: string(p.Protocol), AppProtocol: valueOf(p.AppProtocol), Port: p.Port})
	}
	return Share{Export: e}
}

// own is what this cluster exports; nil and no reason where it does not try to.
func (i *Importer) own(l local) (*Share, *invalid) {
	// One that is being deleted has ended, whatever finalizers keep it.
	if l.export == nil || !l.export.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	if i.config.Permitted != nil && !i.config.Permitted(l.export.Namespace) {
		return nil, &invalid{reasonNotPermitted, fmt.Sprintf("the fleet repository does not let %s export from namespace %s", i.config.Cluster, l.export.Namespace)}
	}
	share, why := observe(i.config.Cluster, l)
	if why != nil {
		return nil, why
	}
	return &share, nil
}

// note tells the publisher of an own share that is another one than before.
func (i *Importer) note(key types.NamespacedName, own *Share) {
	var digest discovery.Digest
	if own != nil {
		// A Share is plain data: it can always be encoded.
		data, _ := json.Marshal(own)
		digest = discovery.DigestOf(data)
	}
	i.mu.Lock()
	changed := i.exported[key] != digest
	i.exported[key] = digest
	if own == nil {
		delete(i.exported, key)
	}
	i.mu.Unlock()
	if changed {
		i.config.Publisher.Changed()
	}
}

// Exports are this cluster's own shares, sorted by namespace and name: what is to
// be published. An error is never an empty list.
func (i *Importer) Exports(ctx context.Context) ([]Share, error) {
	var list v1beta1.ServiceExportList
	if err := i.config.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list ServiceExports: %w", err)
	}
	var all []Share
	for j := range list.Items {
		l := local{export: &list.Items[j]}
		if err := i.lookLocal(ctx, &l); err != nil {
			return nil, fmt.Errorf("export %s: %w", client.ObjectKeyFromObject(l.export), err)
		}
		if own, _ := i.own(l); own != nil {
			all = append(all, *own)
		}
	}
	slices.SortFunc(all, func(a, b Share) int { return compareKeys(a.Key(), b.Key()) })
	return all, nil
}
