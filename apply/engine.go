package apply

import (
	"context"
	"fmt"
	"maps"
	"time"

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
	e.memory.kinds = e.memory.kinds.With(wanted)
	e.watcher.ensure(e.memory.needed(wanted))
	return nil
}

func (e *Engine) seen() Observed {
	live, synced := e.watcher.view.snapshot()
	return Observed{
		Inventory: e.memory.inventory, Kinds: e.memory.kinds,
		Live: live, Synced: synced,
		Applied: e.memory.applied, Retries: e.memory.retries,
		Now: e.now(),
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
