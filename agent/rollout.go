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

// rollOut decides which content of each add-on counts. A new content counts once
// all that the add-on depends on is ready at its own newest content; until then,
// and while the newest can't be rendered, the one before stays. Where the
// selection is not known (targets is nil) all stays as it is.
func rollOut(active []content, targets []target, ready map[string]bool) rollout {
	if targets == nil {
		return rollout{active: active, wanted: apply.Wanted{AddOns: stay(active)}}
	}
	out := rollout{blocked: map[string]string{}, wanted: apply.Wanted{Whole: true}}
	for _, t := range targets {
		now := slices.IndexFunc(active, func(c content) bool { return c.Name == t.name })
		next, addOn := decide(active, now, t, ready, out.blocked)
		if next != nil {
			out.active = append(out.active, *next)
		}
		out.wanted.AddOns = append(out.wanted.AddOns, addOn)
		out.wanted.Whole = out.wanted.Whole && t.err == nil
	}
	return out
}

func decide(active []content, now int, t target, ready map[string]bool, blocked map[string]string) (*content, apply.AddOn) {
	addOn := apply.AddOn{Name: t.name}
	var next *content
	if now >= 0 {
		next = &active[now]
	}
	switch {
	case t.err != nil:
	case next != nil && next.Digest == t.content.Digest:
		next, addOn.Whole = &t.content, true
	default:
		if waits := slices.IndexFunc(t.dependsOn, func(name string) bool { return !ready[name] }); waits >= 0 {
			blocked[t.name] = fmt.Sprintf("add-on %s to be ready", t.dependsOn[waits])
			addOn.Claims = t.content.objects
			break
		}
		next, addOn.Whole = &t.content, true
	}
	if next != nil {
		addOn.Objects, addOn.Failures = next.objects, next.failures
	}
	return next, addOn
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

// readyAddOns are those whose newest content is applied and healthy, with
// nothing held or on its way out.
func readyAddOns(targets []target, active []content, report apply.Report) map[string]bool {
	ready := map[string]bool{}
	for _, r := range report.AddOns {
		t := slices.IndexFunc(targets, func(t target) bool { return t.name == r.Name && t.err == nil })
		a := slices.IndexFunc(active, func(c content) bool { return c.Name == r.Name })
		if t >= 0 && a >= 0 && targets[t].content.Digest == active[a].Digest {
			ready[r.Name] = r.Applied() && r.Healthy() && r.Hold == nil
		}
	}
	return ready
}
