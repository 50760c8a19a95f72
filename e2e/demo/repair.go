package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/e2e/world"
)

// repairByHand edits in one cluster and deletes in the other, as an
// administrator with kubectl does, and says how long it lasts.
func (d *demo) repairByHand(ctx context.Context) error {
	rows := [][]string{{"CLUSTER", "BY HAND", "REPAIRED AFTER"}}
	for i, change := range []struct {
		what string
		do   func(context.Context, *world.Member) (time.Duration, error)
	}{
		{"Deployment web scaled to 0", scaleByHand},
		{"Service web deleted", deleteByHand},
	} {
		m := d.members[i]
		took, err := change.do(ctx, m)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", m.Name(), change.what, err)
		}
		rows = append(rows, []string{m.Name(), change.what, seconds(took)})
	}
	d.printf("%s", table(rows))
	return nil
}

func scaleByHand(ctx context.Context, m *world.Member) (time.Duration, error) {
	var deployment appsv1.Deployment
	if err := m.Client.Get(ctx, webKey(), &deployment); err != nil {
		return 0, err
	}
	wanted := *deployment.Spec.Replicas
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Replicas = new(int32)
	if err := m.Client.Patch(ctx, &deployment, patch, client.FieldOwner("kubectl-edit")); err != nil {
		return 0, err
	}
	return repaired(ctx, m, func(ctx context.Context) error {
		if err := m.Client.Get(ctx, webKey(), &deployment); err != nil {
			return err
		}
		if is := *deployment.Spec.Replicas; is != wanted {
			return fmt.Errorf("replicas are %d, not %d", is, wanted)
		}
		return nil
	})
}

func deleteByHand(ctx context.Context, m *world.Member) (time.Duration, error) {
	var service corev1.Service
	if err := m.Client.Get(ctx, webKey(), &service); err != nil {
		return 0, err
	}
	before := service.UID
	if err := m.Client.Delete(ctx, &service); err != nil {
		return 0, err
	}
	return repaired(ctx, m, func(ctx context.Context) error {
		if err := m.Client.Get(ctx, webKey(), &service); err != nil {
			return err
		}
		if service.UID == before {
			return errors.New("it is still the one that was deleted")
		}
		return nil
	})
}

// repaired waits for check and says how long that was.
func repaired(ctx context.Context, m *world.Member, check func(context.Context) error) (time.Duration, error) {
	start := time.Now()
	err := m.Eventually(ctx, check)
	return time.Since(start), err
}

// webKey is the name of Deployment and Service in the example fleet.
func webKey() client.ObjectKey { return client.ObjectKey{Namespace: web, Name: web} }
