package mainjob_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/e2e/world"
	"github.com/fleetling/fleetling/sources/gittest"
)

const fleetFile = `apiVersion: config.fleetling.dev/v1alpha1
kind: Fleet
clusterSet: prod
clusters: {files: ["clusters/*.yaml"], unlisted: identity}
labels:
  region: {required: true, values: [ap-south, eu-west]}
addons:
- {name: base, path: addons/base}
- name: platform
  path: "addons/overlays/{{labels.region}}"
  dependsOn: [base]
`

const entry = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata:
  name: one
  labels: {region: ap-south}
`

func TestASignedCommitBecomesTheStateOfTheCluster(t *testing.T) {
	fleet := world.NewFleet(t)
	fleet.Write("fleetling.yaml", fleetFile)
	fleet.Write("clusters/one.yaml", entry)
	fleet.Write("addons/base/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
	fleet.Write("addons/base/config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {a: one}\n")
	fleet.Write("addons/overlays/ap-south/app.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: region, namespace: shop}\ndata: {name: ap-south}\n")
	first := fleet.Push("first")
	m := world.Join(t.Context(), t, host, world.MemberOptions{
		Name: "one", Labels: map[string]string{"region": "ap-south"}, URL: fleet.Server.URL,
		FirstSigners: []gittest.Key{fleet.Key}, Node: netip.MustParsePrefix("10.244.0.0/24"),
	})
	require.NoError(t, m.Ready(t.Context(), first))
}
