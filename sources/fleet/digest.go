package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

const digestPrefix = "sha256:"

// digest is over JSON with fixed key order and sorted maps; dependencies are a
// set, components and add-ons have an order.
func digest(s Selection) string {
	type addOn struct {
		Name       string            `json:"name"`
		Path       string            `json:"path"`
		Components []string          `json:"components,omitempty"`
		DependsOn  []string          `json:"dependsOn,omitempty"`
		Substitute map[string]string `json:"substitute,omitempty"`
		Timeout    string            `json:"timeout"`
	}
	canonical := struct {
		Cluster    string  `json:"cluster"`
		ClusterSet string  `json:"clusterSet"`
		AddOns     []addOn `json:"addons"`
	}{Cluster: s.Cluster, ClusterSet: s.ClusterSet, AddOns: []addOn{}}
	for _, a := range s.AddOns {
		canonical.AddOns = append(canonical.AddOns, addOn{
			Name: a.Name, Path: a.Path, Components: a.Components,
			DependsOn: slices.Sorted(slices.Values(a.DependsOn)), Substitute: a.Substitute, Timeout: a.Timeout.String(),
		})
	}
	// Strings, slices and maps of strings: Marshal has nothing to fail on.
	text, _ := json.Marshal(canonical)
	sum := sha256.Sum256(text)
	return digestPrefix + hex.EncodeToString(sum[:])
}
