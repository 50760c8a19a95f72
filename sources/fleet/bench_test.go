package fleet

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// bigTree has 200 add-ons, a third of which are for each cluster, and 1000
// entries in as many files.
func bigTree() fstest.MapFS {
	var addOns strings.Builder
	tree := fstest.MapFS{}
	for i := range 200 {
		fmt.Fprintf(&addOns, `- name: a%d
  path: "addons/a%[1]d/{{labels.region}}"
  when: {matchLabels: {tier: t%[2]d}, matchExpressions: [{key: region, operator: In, values: [r0, r1, r2]}]}
  components:
  - {path: "addons/a%[1]d/clusters/{{cluster.name}}", optional: true}
  substitute: {CLUSTER: "{{cluster.name}}", REGION: "{{labels.region}}"}
`, i, i%3)
		for region := range 5 {
			tree[fmt.Sprintf("addons/a%d/r%d/x.yaml", i, region)] = &fstest.MapFile{}
		}
	}
	tree[fleetFile] = &fstest.MapFile{Data: []byte(head + "clusters: {files: ['clusters/*.yaml']}\n" +
		"labels: {region: {required: true}, tier: {required: true, values: [t0, t1, t2]}}\naddons:\n" + addOns.String())}
	for i := range 1000 {
		tree[fmt.Sprintf("clusters/c%d.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c%d, namespace: fleet, labels: {region: r%d, tier: t%d, cni: cilium}}
spec: {clusterNetwork: {pods: {cidrBlocks: [10.0.0.0/16]}, services: {cidrBlocks: [10.96.0.0/12]}}}
`, i, i%5, i%3)}
	}
	return tree
}

// indexed answers Stat from a map, as a tree of git objects does: fstest.MapFS
// looks through all files to find a folder.
type indexed struct {
	fstest.MapFS
	infos map[string]fs.FileInfo
}

func (i indexed) Stat(name string) (fs.FileInfo, error) {
	if info, ok := i.infos[name]; ok {
		return info, nil
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

func index(b *testing.B, tree fstest.MapFS) fs.FS {
	b.Helper()
	infos := map[string]fs.FileInfo{}
	require.NoError(b, fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		infos[path], err = entry.Info()
		return err
	}))
	return indexed{MapFS: tree, infos: infos}
}

func BenchmarkSelect(b *testing.B) {
	tree := index(b, bigTree())
	f, err := Read(tree)
	require.NoError(b, err)
	id := Identity{Name: "c501", ClusterSet: "prod", Labels: map[string]string{"region": "r1", "tier": "t0"}}
	s, err := f.Select(tree, id, true)
	require.NoError(b, err)
	require.Len(b, s.AddOns, 67)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = f.Select(tree, id, true)
	}
}

func BenchmarkRead(b *testing.B) {
	tree := index(b, bigTree())
	b.ReportAllocs()
	for b.Loop() {
		_, _ = Read(tree)
	}
}
