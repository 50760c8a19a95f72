package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/world"
	"github.com/fleetling/fleetling/sources"
)

// What the demo's commits set.
const (
	signedGreeting   = "hello-fleet"
	unsignedGreeting = "hello-stranger"
)

// pushSigned changes the base of both overlays.
func (d *demo) pushSigned(ctx context.Context) error {
	d.greet(greeting, signedGreeting)
	if err := d.arrive(ctx, "greet the fleet", greeting, signedGreeting); err != nil {
		return err
	}
	d.printf("(these agents look every 2 s; every 30 s is the default)")
	return nil
}

// arrive commits, signed, and says how long it takes until it is applied in both.
func (d *demo) arrive(ctx context.Context, message, from, to string) error {
	d.head = d.fleet.Push(message)
	start := time.Now()
	d.printf("commit %s, signed by %s: %s in %s, %s -> %s", d.head[:12], d.fleet.Key.File(), setting, settingsFile, from, to)
	took := make([]time.Duration, len(d.members))
	err := d.each(ctx, func(ctx context.Context, i int, m *world.Member) error {
		if err := m.Applied(ctx, d.head); err != nil {
			return err
		}
		took[i] = time.Since(start)
		view, err := viewPlatform(ctx, m)
		if err == nil && view.settings[setting] != to {
			err = fmt.Errorf("%s: %s is applied, and %s is %q", m.Name(), d.head, setting, view.settings[setting])
		}
		return err
	})
	if err != nil {
		return err
	}
	for i, m := range d.members {
		d.printf("%s: applied after %s", m.Name(), seconds(took[i]))
	}
	return nil
}

// pushUnsigned shows that what nobody signed changes nothing.
func (d *demo) pushUnsigned(ctx context.Context) error {
	before := make([]map[string]string, len(d.members))
	err := d.each(ctx, func(ctx context.Context, i int, m *world.Member) error {
		// The Pods of the last commit are still being replaced.
		if err := m.AddOnReady(ctx, platform, d.head); err != nil {
			return err
		}
		var err error
		before[i], err = content(ctx, m)
		return err
	})
	if err != nil {
		return err
	}
	d.greet(signedGreeting, unsignedGreeting)
	d.printf("commit %s, not signed: %s -> %s", d.fleet.Commit("greet a stranger", nil)[:12], signedGreeting, unsignedGreeting)
	said := make([]string, len(d.members))
	err = d.each(ctx, func(ctx context.Context, i int, m *world.Member) error {
		var err error
		said[i], err = d.refused(ctx, m, before[i])
		return err
	})
	if err != nil {
		return err
	}
	for i, m := range d.members {
		d.printf("%s: Verified is False, %s", m.Name(), said[i])
	}
	d.printf("applied in both is still %s, and no object of add-on %s has changed", d.head[:12], platform)
	return nil
}

// refused waits until the head is refused and a whole pass was made after that,
// and gives reason and message.
func (d *demo) refused(ctx context.Context, m *world.Member, before map[string]string) (string, error) {
	if err := m.Condition(ctx, v1alpha1.Verified, string(sources.Unsigned)); err != nil {
		return "", err
	}
	if err := m.Reconcile(ctx); err != nil {
		return "", err
	}
	if err := m.Applied(ctx, d.head); err != nil {
		return "", err
	}
	after, err := content(ctx, m)
	if err != nil {
		return "", err
	}
	if changed := differences(before, after); len(changed) > 0 {
		return "", fmt.Errorf("%s: an unsigned commit has changed %v", m.Name(), changed)
	}
	self, err := m.Self(ctx)
	if err != nil {
		return "", err
	}
	c := meta.FindStatusCondition(self.Status.Conditions, v1alpha1.Verified)
	if c == nil {
		return "", fmt.Errorf("%s: condition %s is gone", m.Name(), v1alpha1.Verified)
	}
	return c.Reason + ": " + c.Message, nil
}

// mendBranch takes the unsigned commit off the branch, as `git push --force`
// would, and makes the change by a signed one.
func (d *demo) mendBranch(ctx context.Context) error {
	d.fleet.Git("reset", "--quiet", "--hard", d.head)
	d.greet(signedGreeting, unsignedGreeting)
	if err := d.arrive(ctx, "greet a stranger, signed", signedGreeting, unsignedGreeting); err != nil {
		return err
	}
	return d.each(ctx, func(ctx context.Context, _ int, m *world.Member) error {
		return m.Condition(ctx, v1alpha1.Verified, "Verified")
	})
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
