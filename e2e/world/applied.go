package world

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
)

// Applied waits until a revision is applied, healthy or not.
func (m *Member) Applied(ctx context.Context, revision string) error {
	return m.settles(ctx, func(self v1alpha1.Member) error {
		if self.Status.AppliedRevision != revision {
			return fmt.Errorf("applied is %q, not %q", self.Status.AppliedRevision, revision)
		}
		return nil
	})
}

// AddOnReady waits until an add-on is Ready at a revision, with nothing under
// way any more.
func (m *Member) AddOnReady(ctx context.Context, name, revision string) error {
	return m.Eventually(ctx, func(ctx context.Context) error {
		addOn, err := m.AddOn(ctx, name)
		switch {
		case err != nil:
			return err
		case addOn.Status.Revision != revision:
			return fmt.Errorf("add-on %s is at %q, not %q: %s", name, addOn.Status.Revision, revision, words(addOn.Status.Conditions))
		case !meta.IsStatusConditionTrue(addOn.Status.Conditions, v1alpha1.Ready):
			return fmt.Errorf("add-on %s is not ready: %s", name, words(addOn.Status.Conditions))
		case meta.IsStatusConditionTrue(addOn.Status.Conditions, v1alpha1.Reconciling):
			return fmt.Errorf("add-on %s is not at rest: %s", name, words(addOn.Status.Conditions))
		}
		return nil
	})
}
