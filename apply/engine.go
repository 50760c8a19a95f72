package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// Config is what an Engine needs.
type Config struct {
	// REST reaches the API server.
	REST *rest.Config
	// Namespace holds the inventory.
	Namespace string
	// Changed is called, from any goroutine, when a pass may have something to
	// do. It must not block.
	Changed func()
	// Now is the clock.
	Now func() time.Time
}

// Engine makes one cluster hold what is wanted, pass by pass. One goroutine at a
// time may use it.
type Engine struct {
	requests  requests
	store     *store
	watcher   *watcher
	discovery discovery.DiscoveryInterfaceWithContext
	services  typedv1.ServicesGetter
	now       func() time.Time
	memory    memory
}

// New makes an engine whose watches end with ctx. It sends nothing.
func New(ctx context.Context, config Config) (*Engine, error) {
	requests, err := newRequests(config.REST)
	if err != nil {
		return nil, err
	}
	core, err := typedv1.NewForConfig(config.REST)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	watches, err := dynamic.NewForConfig(config.REST)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	discoveries, err := discovery.NewDiscoveryClientForConfig(config.REST)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &Engine{
		requests:  requests,
		store:     &store{client: core.ConfigMaps(config.Namespace)},
		watcher:   &watcher{client: watches, view: newView(config.Changed), lifetime: ctx, running: map[schema.GroupKind]runningWatch{}},
		discovery: discoveries,
		services:  core,
		now:       config.Now,
		memory:    memory{applied: map[ID]Applied{}, retries: map[ID]Retry{}},
	}, nil
}

// Close ends the watches and waits for them.
func (e *Engine) Close() { e.watcher.close() }

// RetryNow has the next pass try at once what was refused.
func (e *Engine) RetryNow() { e.memory.retryNow() }

// Pass observes, plans, applies and prunes, once. It waits for nothing: what is
// not ready yet is in the report, and Changed is called when there is news. An
// error says that the pass did not come to its end; what it did is remembered.
func (e *Engine) Pass(ctx context.Context, wanted Wanted) (Report, error) {
	if err := e.observe(ctx, wanted); err != nil {
		return Report{}, err
	}
	seen := e.seen()
	plan := NewPlan(wanted, seen)
	if err := e.intend(ctx, plan); err != nil {
		return Report{}, err
	}
	done, err := e.execute(ctx, plan)
	if settleErr := e.settle(ctx, plan, done); err == nil {
		err = settleErr
	}
	if err != nil {
		return Report{}, err
	}
	e.memory.prune(plan)
	e.memory.discovery.missing(plan.Unserved || outdated(done))
	return e.report(plan, done, seen.Now), nil
}

// Look observes and plans, and touches nothing: the report says in Waiting and
// Removing what a pass would apply and delete.
func (e *Engine) Look(ctx context.Context, wanted Wanted) (Report, error) {
	if err := e.observe(ctx, wanted); err != nil {
		return Report{}, err
	}
	seen := e.seen()
	plan := NewPlan(wanted, seen)
	e.memory.discovery.missing(plan.Unserved)
	return e.report(plan, wouldDo(plan), seen.Now), nil
}

// Untouched is what an object waits for that Look has found to be due.
const Untouched = "a pass that may touch it"

func wouldDo(plan Plan) map[string]*progress {
	all := map[string]*progress{}
	for _, addOn := range plan.AddOns {
		p := &progress{
			failures: slices.Concat(addOn.Failures, addOn.Removal.Failures),
			waiting:  slices.Clone(addOn.Waiting), removing: slices.Clone(addOn.Removal.Pending),
		}
		for _, steps := range addOn.Steps {
			for _, step := range steps {
				if step.Why != Unverified { // nothing tells of a change
					p.waiting = append(p.waiting, Waiting{step.ID, Untouched})
				}
			}
		}
		for _, target := range addOn.Removal.Now {
			if target.Way != Look {
				p.removing = append(p.removing, Waiting{target.ID, Untouched})
			}
		}
		all[addOn.Name] = p
	}
	return all
}

// observe brings what planning reads up to date: the inventory once, the kinds
// when they may have changed, the watches for the kinds that are wanted or held.
func (e *Engine) observe(ctx context.Context, wanted Wanted) error {
	if e.memory.inventory == nil {
		inventory, err := e.store.load(ctx)
		if err != nil {
			return err
		}
		e.memory.inventory = inventory
	}
	definitions := definitionsOf(e.watcher.view.of(schema.ParseGroupKind(kindDefinition)))
	if e.memory.discovery.due(definitions, e.now()) {
		kinds, err := Discover(ctx, e.discovery)
		if err != nil {
			return err
		}
		e.memory.kinds = kinds
		e.memory.discovery.done(definitions, e.now())
	}
	if err := e.birth(ctx, wanted); err != nil {
		return err
	}
	e.memory.kinds = e.memory.kinds.With(wanted)
	e.watcher.ensure(e.memory.needed(wanted))
	return nil
}

// birth looks for the Service default/kubernetes, until it is there, when there
// are Services to apply: the API server makes it itself, some time after it
// answers, and never where another Service has taken its address.
func (e *Engine) birth(ctx context.Context, wanted Wanted) error {
	e.memory.unborn = false
	if e.memory.born || !wanted.has(schema.GroupKind{Kind: kindService}) {
		return nil
	}
	_, err := e.services.Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("look for Service default/kubernetes: %w", err)
	}
	e.memory.born = err == nil
	e.memory.unborn = !e.memory.born
	return nil
}

func (e *Engine) seen() Observed {
	live, synced := e.watcher.view.snapshot()
	return Observed{
		Inventory: e.memory.inventory, Kinds: e.memory.kinds,
		Live: live, Synced: synced,
		Applied: e.memory.applied, Retries: e.memory.retries,
		Unborn: e.memory.unborn, Now: e.now(),
	}
}

// intend writes down what the plan is about to apply, before it does.
func (e *Engine) intend(ctx context.Context, plan Plan) error {
	for _, addOn := range plan.AddOns {
		if maps.Equal(addOn.Hold, e.memory.inventory[addOn.Name]) {
			continue
		}
		if err := e.write(ctx, e.store.grow, addOn.Name, addOn.Hold); err != nil {
			return err
		}
	}
	return nil
}

// settle writes down what has become of it: what is applied is held, what is
// gone, released or moved is not.
func (e *Engine) settle(ctx context.Context, plan Plan, done map[string]*progress) error {
	for _, addOn := range plan.AddOns {
		next := maps.Clone(addOn.Hold)
		if p := done[addOn.Name]; p != nil {
			for _, id := range p.applied {
				next[id] = Held
			}
			for _, id := range p.gone {
				delete(next, id)
			}
		}
		for _, id := range addOn.Moved {
			delete(next, id)
		}
		if maps.Equal(next, e.memory.inventory[addOn.Name]) {
			continue
		}
		if err := e.write(ctx, e.store.shrink, addOn.Name, next); err != nil {
			return err
		}
	}
	return nil
}

// write keeps memory and cluster alike: after a failed write the inventory is
// read again before the next plan is made.
func (e *Engine) write(ctx context.Context, save func(context.Context, string, Set) error, addOn string, set Set) error {
	if err := save(ctx, addOn, set); err != nil {
		e.memory.inventory = nil
		return err
	}
	e.memory.inventory[addOn] = set
	if len(set) == 0 {
		delete(e.memory.inventory, addOn)
	}
	return nil
}
