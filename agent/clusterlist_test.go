package agent

import (
	"net/netip"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/sources/fleet"
)

func readFleet(t *testing.T, extra string) fleet.Fleet {
	t.Helper()
	entry := func(name, region, pods string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(`apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: ` + name + `, labels: {region: ` + region + `}, annotations: {fleetling.dev/endpoint-cidrs: 192.0.2.0/24}}
spec: {clusterNetwork: {pods: {cidrBlocks: ["` + pods + `"]}}}
`)}
	}
	f, err := fleet.Read(fstest.MapFS{
		"fleetling.yaml": {Data: []byte(`apiVersion: config.fleetling.dev/v1alpha1
kind: Fleet
clusterSet: prod
clusters: {files: ["clusters/*.yaml"]}
labels: {region: {}}
addons: [{name: base, path: base}]
registry: {nats: {servers: ["tls://nats:4222"]}}
` + extra)},
		"clusters/a.yaml": entry("a", "eu", "10.1.0.0/16"), "clusters/b.yaml": entry("b", "us", "10.2.0.0/16"),
	})
	require.NoError(t, err)
	return f
}

func TestTheSignedListSaysWhoIsWhereAndWhatIsAgreedTo(t *testing.T) {
	digest := "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	list := listOf(readFleet(t, "acknowledge: [{addon: clusterset, delete: \""+digest+"\", reason: moved}]\n"), "a")
	assert.Equal(t, "prod", list.ClusterSet)
	assert.Equal(t, "a", list.Cluster)
	assert.Equal(t, []string{"tls://nats:4222"}, list.Registry.NATS)
	assert.Equal(t, "clusterset", list.Registry.Bucket)
	require.Len(t, list.Entries, 2)
	assert.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("192.0.2.0/24")}, list.Entries[0].Ranges)
	assert.Equal(t, []discovery.Digest{discovery.Digest(digest)}, list.Acknowledged)
}

func TestWhoMayExportIsTheSameHereAsInTheFleetFile(t *testing.T) {
	for name, exports := range map[string]string{
		"nothing said":   "",
		"nobody":         "exports: []\n",
		"by name":        "exports: [{namespace: shop, clusters: [a]}]\n",
		"by label":       "exports: [{namespace: shop, when: {matchLabels: {region: us}}}, {namespace: kube-system}]\n",
		"one for nobody": "exports: [{namespace: shop, clusters: [c]}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := readFleet(t, exports)
			policy := policyOf(f)
			for _, cluster := range []string{"a", "b"} {
				for _, namespace := range []string{"shop", "pay", "default", "kube-system", "kube-public", "fleetling-system"} {
					assert.Equal(t, f.MayExport(cluster, namespace), policy.Refuses(cluster, namespace) == "", "%s from %s", namespace, cluster)
				}
			}
		})
	}
}
