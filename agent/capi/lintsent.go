package capi

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetling/fleetling/sources/fleet"
)

const (
	webhookText = "nothing answers a webhook before there is a network, and every request waits for it: let the agent bring it from Git"
	serviceText = "the first Service of a cluster may take the address of default/kubernetes, and the cluster never becomes healthy: let the agent bring it from Git"
)

// notAtBirth says of a kind, by group and kind, why no new cluster may get it.
func notAtBirth() map[[2]string]string {
	return map[[2]string]string{
		{"", "Service"}: serviceText,
		{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration"}: webhookText,
		{"admissionregistration.k8s.io", "MutatingWebhookConfiguration"}:   webhookText,
		{"", "PersistentVolumeClaim"}:                                      "no storage is there at birth: let the agent bring it from Git",
	}
}

// sent looks at one object that a new cluster gets.
func (s *sending) sent(o inside) {
	if why := s.unfit(o); why != "" {
		s.add(o.source, o.place, "%s", why)
	}
	if o.GetNamespace() != agentNamespace {
		return
	}
	switch [2]string{o.GetKind(), o.GetName()} {
	case [2]string{"ConfigMap", identityName}:
		s.identity(o)
	case [2]string{"ConfigMap", configName}:
		s.config(o)
	case [2]string{"Deployment", agentName}:
		s.agent(o)
	}
}

// unfit says why an object can't be sent by this set, or "".
func (s *sending) unfit(o inside) string {
	of := [2]string{o.GroupVersionKind().Group, o.GetKind()}
	switch {
	case o.GetName() == "":
		return "it has no name: it would fail, or be created again at each look"
	case notAtBirth()[of] != "":
		return notAtBirth()[of]
	case s.defined[of]:
		return "its CustomResourceDefinition is in the same bundle and not served yet: let the agent bring it from Git"
	case o.is("", "Secret") && s.strategy == applyOnce:
		return "a credential under " + applyOnce + " can never be renewed: send it by a set with strategy " + reconcile
	case isWorkload(o) && s.strategy == reconcile:
		return "under " + reconcile + " Cluster API undoes what Git does to it later: send it by a set with strategy " + applyOnce
	}
	return ""
}

func isWorkload(o inside) bool {
	kinds := map[string][]string{"": {"Pod"}, "apps": {"Deployment", "DaemonSet", "StatefulSet", "ReplicaSet"}, "batch": {"Job", "CronJob"}}
	of := o.GroupVersionKind()
	return slices.Contains(kinds[of.Group], of.Kind)
}

// identity makes sure that a cluster is told its own name and no other.
func (s *sending) identity(o inside) {
	if s.strategy != reconcile {
		s.add(o.source, o.place, "an identity under %s never changes: send it by a set with strategy %s", s.strategy, reconcile)
	}
	text, _, _ := unstructured.NestedString(o.Object.Object, "data", identityKey)
	identity, err := fleet.ParseIdentity(identityKey, []byte(text))
	switch {
	case err != nil:
		s.add(o.source, o.place, "the agent would refuse it: %.300s", err.Error())
	case s.selector != identity.Name:
		s.add(o.source, o.place, "it says that the cluster is %s, and %s selects by %s=%.80s: write matchLabels {%s: %s}",
			identity.Name, s.set, ClusterLabel, s.selector, ClusterLabel, identity.Name)
	}
}

// config looks for listeners: on the node's network their ports are fixed ones
// of the node.
func (s *sending) config(o inside) {
	text, _, _ := unstructured.NestedString(o.Object.Object, "data", configKey)
	config, err := decodeConfig([]byte(text))
	if err != nil {
		s.add(o.source, o.place, "the agent would refuse it: %.300s", err.Error())
		return
	}
	listen := section(config, "listen")
	for _, listener := range []string{"metrics", "health"} {
		if listen[listener] != "0" {
			s.add(o.source, o.place, `listen.%s would take a port of the node: write "0"`, listener)
		}
	}
}
