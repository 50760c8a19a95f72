package main

import (
	"context"
	"strings"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/world"
)

// joinAgents starts an agent beside each cluster, under the rights that
// manifests/ gives it, and shows what it makes of the repository.
func (d *demo) joinAgents(ctx context.Context) error {
	rows := make([][]string, len(d.members))
	err := d.each(ctx, func(ctx context.Context, i int, m *world.Member) error {
		m.StartAgent(ctx)
		if err := m.Condition(ctx, v1alpha1.Verified, "Verified"); err != nil {
			return err
		}
		self, err := m.Self(ctx)
		if err != nil {
			return err
		}
		rows[i] = memberRow(m.Name(), self.Status)
		return nil
	})
	if err != nil {
		return err
	}
	d.printf("%s", table(append([][]string{{"CLUSTER", "REVISION", "SIGNER", "FINGERPRINT", "LABELS"}}, rows...)))
	return nil
}

func memberRow(name string, s v1alpha1.MemberStatus) []string {
	revision, labels := v1alpha1.Revision{}, []string{}
	if s.Revision != nil {
		revision = *s.Revision
	}
	if s.Identity != nil {
		for _, l := range s.Identity.Labels {
			labels = append(labels, l.Key+"="+l.Value)
		}
	}
	return []string{name, revision.Short, revision.Signer, revision.Fingerprint, strings.Join(labels, ",")}
}
