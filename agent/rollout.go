package agent

import (
	"fmt"
	"slices"

	"github.com/fleetling/fleetling/apply"
	"github.com/fleetling/fleetling/sources"
)

// target is what the newest revision wants of one add-on: its content, or why it
// can't be rendered.
type target struct {
	name      string
	path      string
	dependsOn []string
	content   content
	warnings  []*sources.Error
	err       error
}

// rollout is what is rolled out now.
type rollout struct {
	// active are the contents to apply and keep, in order.
	active []content
	// blocked are the add-ons whose newer content waits, and for what.
	blocked map[string]string
	wanted  apply.Wanted
}

// standing is how an add-on was doing when a pass ended.
type standing struct {
	// ready: its newest content is applied and healthy, with nothing held.
	ready bool
	// busy: it is not healthy, and time may change that without anybody's help.
	busy bool
}

// rollOut decides which content of each add-on counts. A new content counts once
// all that the add-on depends on is ready at its own newest content; until then,
// and while the newest can't be rendered, the one before stays. The one with the
// agent itself waits until no other add-on is under way. Where the selection is
// not known (targets is nil) all stays as it is.
func rollOut(active []content, targets []target, seen map[string]standing) rollout {
	if targets == nil {
		return rollout{active: active, wanted: apply.Wanted{AddOns: stay(active)}}
	}
	out := rollout{blocked: map[string]string{}, wanted: apply.Wanted{Whole: true}}
	for _, t := range targets {
		next, addOn := out.decide(named(active, t.name), t, waitsFor(active, targets, t, seen))
		if next != nil {
			out.active = append(out.active, *next)
		}
		out.wanted.AddOns = append(out.wanted.AddOns, addOn)
		out.wanted.Whole = out.wanted.Whole && t.err == nil
	}
	return out
}

// decide gives the content of an add-on that counts, if any. next is the one that
// counted before, waits what a new one waits for.
func (r *rollout) decide(next *content, t target, waits string) (*content, apply.AddOn) {
	addOn := apply.AddOn{Name: t.name}
	switch {
	case t.err != nil:
	case next.is(t.content) || waits == "":
		next, addOn.Whole = &t.content, true
	default:
		r.blocked[t.name] = waits
		addOn.Claims = t.content.objects
	}
	if next != nil {
		addOn.Objects, addOn.Failures = next.objects, next.failures
	}
	return next, addOn
}

// waitsFor says what a new content waits for, or nothing.
func waitsFor(active []content, targets []target, t target, seen map[string]standing) string {
	for _, name := range t.dependsOn {
		if !seen[name].ready {
			return fmt.Sprintf("add-on %s to be ready", name)
		}
	}
	if !t.content.holdsAgent() {
		return ""
	}
	for _, other := range targets {
		if other.name != t.name && underWay(active, targets, other, seen) {
			return fmt.Sprintf("add-on %s to be ready, or to fail: the agent itself is upgraded last", other.name)
		}
	}
	return ""
}

// underWay tells whether an add-on begins with this pass, or may still become
// healthy by itself.
func underWay(active []content, targets []target, t target, seen map[string]standing) bool {
	switch known, ok := seen[t.name]; {
	case t.err != nil || t.content.holdsAgent():
		return false
	case named(active, t.name).is(t.content):
		return !ok || known.busy
	}
	return waitsFor(active, targets, t, seen) == ""
}

func named(contents []content, name string) *content {
	if i := slices.IndexFunc(contents, func(c content) bool { return c.Name == name }); i >= 0 {
		return &contents[i]
	}
	return nil
}

func stay(active []content) []apply.AddOn {
	var all []apply.AddOn
	for _, c := range active {
		all = append(all, apply.AddOn{Name: c.Name, Objects: c.objects, Failures: c.failures})
	}
	return all
}

// sameContents tells whether the snapshot would be the same.
func sameContents(a, b []content) bool {
	return slices.EqualFunc(a, b, func(x, y content) bool {
		return x.Name == y.Name && x.Digest == y.Digest && x.Path == y.Path && x.Timeout == y.Timeout && slices.Equal(x.DependsOn, y.DependsOn)
	})
}
