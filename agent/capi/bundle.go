package capi

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetling/fleetling/sources/fleet"
)

const (
	addonsGroup  = "addons.cluster.x-k8s.io"
	setKind      = "ClusterResourceSet"
	secretType   = addonsGroup + "/resource-set"
	applyOnce    = "ApplyOnce"
	reconcile    = "Reconcile"
	manifestsKey = "fleetling.yaml"

	bundleName        = "fleetling-agent"
	identityPrefix    = "fleetling-identity-"
	credentialsPrefix = "fleetling-credentials-"
)

// Target is where a bundle goes.
type Target struct {
	// APIVersion is the version of addons.cluster.x-k8s.io: v1beta2 or v1beta1.
	APIVersion string
	// Namespace is that of Clusters whose entry names none.
	Namespace string
	// ClusterSet is the fleet's, for the identities.
	ClusterSet string
}

func (t Target) check() error {
	if !slices.Contains(versions(), t.APIVersion) {
		return fmt.Errorf("%s/%s: the versions are v1beta2 and v1beta1", addonsGroup, t.APIVersion)
	}
	return nil
}

func versions() []string { return []string{"v1beta2", "v1beta1"} }

// Bundle gives the objects for the management cluster, without any secret: per
// namespace the agent, per entry its identity.
func Bundle(installed []Object, entries []Entry, to Target) ([]Object, error) {
	agent, err := Text(installed)
	if err != nil {
		return nil, err
	}
	var made []Object
	for _, namespace := range namespaces(entries, to) {
		everywhere := map[string]any{"matchExpressions": []any{map[string]any{"key": ClusterLabel, "operator": "Exists"}}}
		source := resource("ConfigMap", namespace, bundleName, map[string]any{manifestsKey: string(agent)})
		made = append(made, source, to.set(namespace, bundleName, everywhere, applyOnce, source))
	}
	for _, entry := range entries {
		identity, err := identityOf(entry, to.ClusterSet)
		if err != nil {
			return nil, err
		}
		text, err := Text([]Object{identity})
		if err != nil {
			return nil, err
		}
		source := resource("ConfigMap", to.namespace(entry), identityPrefix+entry.Name, map[string]any{identityKey: string(text)})
		made = append(made, source, to.setOf(entry, source))
	}
	return made, errors.Join(to.check(), refuse(made))
}

// Plain gives what one cluster needs, as objects for itself: for manifest folders
// of k3s and RKE2, and inline manifests of Talos. What Bundle refuses is refused.
func Plain(installed []Object, entry Entry, clusterSet string) ([]Object, error) {
	if _, err := Bundle(installed, []Entry{entry}, Target{APIVersion: versions()[0], Namespace: "default", ClusterSet: clusterSet}); err != nil {
		return nil, err
	}
	identity, err := identityOf(entry, clusterSet)
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(installed), identity), nil
}

// refuse makes an error of findings: a bundle with one is not given away.
func refuse(made []Object) error {
	var problems []error
	for _, finding := range Lint(made) {
		problems = append(problems, errors.New(finding.String()))
	}
	return errors.Join(problems...)
}

func namespaces(entries []Entry, to Target) []string {
	var found []string
	for _, entry := range entries {
		found = append(found, to.namespace(entry))
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (t Target) namespace(entry Entry) string { return cmp.Or(entry.Namespace, t.Namespace) }

// identityOf gives the identity that the cluster is told; one that the agent
// would refuse is an error.
func identityOf(entry Entry, clusterSet string) (Object, error) {
	labels := map[string]any{}
	for key, value := range entry.Labels {
		labels[key] = value
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": configVersion, "kind": "Identity", "name": entry.Name, "clusterSet": clusterSet, "labels": labels,
	})
	if err != nil {
		return Object{}, fmt.Errorf("identity of %s: %w", entry.Name, err)
	}
	if _, err := fleet.ParseIdentity(entry.File, text); err != nil {
		return Object{}, fmt.Errorf("identity of %s: %w", entry.Name, err)
	}
	data := map[string]any{identityKey: string(text)}
	if entry.APIServer != "" {
		data[apiServerKey] = entry.APIServer
	}
	return resource("ConfigMap", agentNamespace, identityName, data), nil
}

// resource makes a ConfigMap or a Secret.
func resource(kind, namespace, name string, data map[string]any) Object {
	return Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"data":     data,
	}}}
}

// setOf makes the set that re-applies source to one cluster.
func (t Target) setOf(entry Entry, source Object) Object {
	selector := map[string]any{"matchLabels": map[string]any{ClusterLabel: entry.Name}}
	return t.set(source.GetNamespace(), source.GetName(), selector, reconcile, source)
}

func (t Target) set(namespace, name string, selector map[string]any, strategy string, source Object) Object {
	return Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": addonsGroup + "/" + t.APIVersion, "kind": setKind,
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{
			"clusterSelector": selector,
			"strategy":        strategy,
			"resources":       []any{map[string]any{"kind": source.GetKind(), "name": source.GetName()}},
		},
	}}}
}
