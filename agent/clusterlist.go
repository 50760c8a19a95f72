package agent

import (
	"github.com/fleetling/fleetling/agent/clusterset"
	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/peer"
	"github.com/fleetling/fleetling/sources/fleet"
)

// listOf takes what a signed fleet file says of the ClusterSet over the edge of
// discovery.
func listOf(f fleet.Fleet, cluster string) clusterset.List {
	list := clusterset.List{ClusterSet: f.ClusterSet, Cluster: cluster, Policy: policyOf(f)}
	if f.Registry != nil {
		list.Registry = &clusterset.Registry{Git: f.Registry.Git, NATS: f.Registry.NATS, Bucket: f.Registry.Bucket}
	}
	for _, c := range f.Clusters {
		list.Entries = append(list.Entries, peer.Entry{Name: c.Name, Keys: c.MemberKeys, Ranges: c.Ranges()})
	}
	for _, a := range f.Acknowledge {
		list.Acknowledged = append(list.Acknowledged, discovery.Digest(a.Delete))
	}
	return list
}

// policyOf writes the export rules out by cluster.
func policyOf(f fleet.Fleet) peer.Policy {
	if f.Exports == nil {
		return peer.Policy{}
	}
	// Without this rule an empty list would be none, which allows nearly all.
	policy := peer.Policy{Rules: []peer.Rule{{Namespace: peer.Any}}}
	for _, rule := range f.Exports {
		var clusters []string
		for _, c := range f.Clusters {
			if f.MayExport(c.Name, rule.Namespace) {
				clusters = append(clusters, c.Name)
			}
		}
		policy.Rules = append(policy.Rules, peer.Rule{Namespace: rule.Namespace, Clusters: clusters})
	}
	return policy
}
