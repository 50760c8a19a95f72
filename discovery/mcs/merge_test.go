package mcs

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetling/fleetling/discovery/record"
)

var update = flag.Bool("update", false, "rewrite want in testdata")

// testFiles runs decide over the first file of every case, and compares with the
// last.
func testFiles(t *testing.T, folder string, decide func(t *testing.T, in []byte) string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			require.Len(t, archive.Files, 2)
			in, want := &archive.Files[0], &archive.Files[1]
			got := decide(t, in.Data)
			if *update {
				want.Data = []byte(got)
				require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o600))
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Errorf("%s(-want +got):\n%s", archive.Comment, diff)
			}
		})
	}
}

func readShares(t *testing.T, in []byte) []Share {
	t.Helper()
	var shares []Share
	require.NoError(t, yaml.UnmarshalStrict(in, &shares))
	for i := range shares {
		shares[i].Export.Namespace, shares[i].Export.Name = "shop", "catalog"
	}
	return shares
}

func write(t *testing.T, value any) string {
	t.Helper()
	data, err := yaml.Marshal(value)
	require.NoError(t, err)
	return string(data)
}

func TestMerge(t *testing.T) {
	testFiles(t, "merge", func(t *testing.T, in []byte) string {
		t.Helper()
		shares := readShares(t, in)
		before := write(t, shares)
		got := write(t, Merge(shares))
		assert.Equal(t, before, write(t, shares), "the shares are not changed")

		slices.Reverse(shares)
		assert.Equal(t, got, write(t, Merge(shares)), "the order of the shares does not matter")
		return got
	})
}

func TestObjects(t *testing.T) {
	testFiles(t, "objects", func(t *testing.T, in []byte) string {
		t.Helper()
		i := Merge(readShares(t, in))
		var all []any
		var derived *corev1.Service
		if i.Service.Type == clusterSetIP {
			derived = derivedService(i)
			all = append(all, derivedService(i))
			// As a dual-stack cluster gives them.
			derived.Spec.ClusterIPs = []string{"10.96.0.7", "fd00::7"}
			derived.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		}
		all = append(all, serviceImport(i, derived))
		for _, slice := range endpointSlices(i) {
			all = append(all, slice)
		}
		documents := make([]string, len(all))
		for j, object := range all {
			documents[j] = write(t, object)
		}
		return strings.Join(documents, "---\n")
	})
}

// generated is n members that export one Service, with all kinds of differences
// where random is given.
func generated(n int, random *rand.Rand) []Share {
	shares := make([]Share, n)
	for i := range shares {
		s := Share{Cluster: fmt.Sprintf("cluster-%04d", i), Export: record.Export{
			Namespace: "shop", Name: "catalog", Created: time.Unix(1_700_000_000+int64(i), 0).UTC(), Type: clusterSetIP, SessionAffinity: noAffinity,
			IPFamilies: []string{"IPv4"}, Ports: []record.Port{{Name: "http", Protocol: "TCP", Port: 80}},
		}}
		slice := record.Slice{AddressType: "IPv4", Ports: []record.SlicePort{{Name: "http", Protocol: "TCP", Port: 8080}}}
		for j := range 10 {
			slice.Endpoints = append(slice.Endpoints, record.Endpoint{Address: fmt.Sprintf("10.%d.%d.%d", i/256, i%256, j), Ready: true, Serving: true})
		}
		s.Slices = []record.Slice{slice}
		if random != nil {
			vary(&s, random)
		}
		shares[i] = s
	}
	return shares
}

func vary(s *Share, random *rand.Rand) {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	s.Late = random.IntN(3) == 0
	s.Export.Created = time.Unix(1_700_000_000+random.Int64N(3), 0).UTC()
	s.Export.Type = pick(clusterSetIP, headless)
	s.Export.IPFamilies = [][]string{{"IPv4"}, {"IPv6"}, {"IPv4", "IPv6"}, nil}[random.IntN(4)]
	s.Export.Ports, s.Slices = nil, nil
	slice := record.Slice{AddressType: pick("IPv4", "IPv6"), Endpoints: []record.Endpoint{{Address: s.Cluster, Ready: random.IntN(2) == 0}}}
	names, sockets := random.Perm(4), random.Perm(6)
	for i := range random.IntN(4) {
		p := record.Port{
			Name: []string{"", "http", "https", "tcp-80"}[names[i]], Protocol: []string{"TCP", "UDP"}[sockets[i]/3],
			Port: []int32{80, 443, 8080}[sockets[i]%3], AppProtocol: pick("", "http"),
		}
		s.Export.Ports = append(s.Export.Ports, p)
		slice.Ports = append(slice.Ports, record.SlicePort{Name: p.Name, Protocol: p.Protocol, Port: 10000 + p.Port})
	}
	s.Slices = append(s.Slices, slice)
}

// What must hold of every merge, over many random ones.
func TestMergeAlwaysMakesALegalServiceThatLeadsOnlyWhereThePortIs(t *testing.T) {
	random := rand.New(rand.NewPCG(1645, 1))
	for range 2000 {
		shares := generated(1+random.IntN(5), random)
		got := Merge(shares)
		must := func(holds bool, what string) {
			if !holds {
				t.Fatalf("%s\n%s---\n%s", what, write(t, shares), write(t, got))
			}
		}
		exposed, sockets := map[string]record.Port{}, map[socket]bool{}
		for _, p := range got.Service.Ports {
			_, twice := exposed[p.Name]
			must(!twice, "two ports with one name")
			must(!sockets[socketOf(p)], "two ports with one number")
			must(p.Name != "" || len(got.Service.Ports) == 1, "a port without a name beside others")
			exposed[p.Name], sockets[socketOf(p)] = p, true
		}
		for _, s := range got.Slices {
			share := shares[slices.IndexFunc(shares, func(o Share) bool { return o.Cluster == s.Cluster })]
			for _, p := range s.Slice.Ports {
				front, there := exposed[p.Name]
				must(there, "a slice has a port that the Service has not")
				// What listens is 10000 + the port that the member exports.
				must(p.Port == 10000+front.Port, "a port leads to another one")
				must(slices.ContainsFunc(share.Export.Ports, func(o record.Port) bool { return socketOf(o) == socketOf(front) }), "a port leads to a member that has it not")
			}
		}
		ways := reachable(got)
		for i := range shares {
			shares[i].Late = false
		}
		must(maps.Equal(reachable(Merge(shares)), ways), "being late closes a way")
		must(len(got.Clusters) == len(shares), "an exporter is missing")
	}
}

func reachable(i Import) map[way]bool {
	open := map[way]bool{}
	for _, s := range i.Slices {
		if anyReady(s.Slice) {
			for _, w := range ways(s.Slice) {
				open[w] = true
			}
		}
	}
	return open
}

func TestAnEndpointThatChangesChangesOneSliceInWhateverOrderTheyCome(t *testing.T) {
	share := peerShare("c2", "10.2.0.1", "10.2.0.3")
	share.Slices = append(share.Slices, peerShare("c2", "10.2.0.2", "10.2.0.10").Slices...)
	before := Merge([]Share{share})
	changed := peerShare("c2", "10.2.0.2", "10.2.0.11")
	changed.Slices = append(changed.Slices, share.Slices[0])
	after := Merge([]Share{changed})
	require.Len(t, after.Slices, 2)
	assert.Equal(t, before.Slices[0], after.Slices[0])
	assert.Equal(t, "10.2.0.11", after.Slices[1].Slice.Endpoints[1].Address)
	assert.Equal(t, endpointSlices(before)[1].Name, endpointSlices(after)[1].Name)
}

func TestMergeOfNothingIsNothing(t *testing.T) {
	assert.Empty(t, Merge(nil).Clusters)
}

func BenchmarkMerge(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		shares := generated(n, nil)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Merge(shares)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/share")
		})
	}
}

// Time is not asserted, the work is: what Merge allocates is what it makes, and
// ten times the shares may not need much more than ten times of it.
func TestMergeGrowsWithTheNumberOfShares(t *testing.T) {
	work := func(n int) float64 {
		shares := generated(n, nil)
		for i := range shares {
			shares[i].Late = i%2 == 1
		}
		return testing.AllocsPerRun(5, func() { Merge(shares) })
	}
	hundred, thousand := work(100), work(1000)
	assert.Less(t, thousand/hundred, 12.0, "%.0f allocations for 100, %.0f for 1000", hundred, thousand)
}
