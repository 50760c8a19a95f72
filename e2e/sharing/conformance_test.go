package sharing_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sync/errgroup"
)

// spec is one of the specifications that the MCS API's conformance suite
// (sigs.k8s.io/mcs-api/conformance) asks of an implementation, the optional ones
// included: by its short name, with the same objects, assertions and time limits.
type spec struct {
	name string
	play func(*stage)
}

// specs are in the suite's order. A number is a spec's place in it.
func specs() []spec {
	return []spec{
		{"an import exists while one cluster exports", importLivesWithItsExporters},
		{"only exported labels and annotations travel", exportedMetadataOnly},
		{"of conflicting labels and annotations the oldest win", conflictingMetadata},
		{"a ClusterIP export is a ClusterSetIP import everywhere", clusterSetIPImport},
		{"session affinity is the export's", sessionAffinity},
		{"internal traffic policy is the export's", internalTrafficPolicy},
		{"traffic distribution is the export's", trafficDistribution},
		{"an IP for each IP family, in their order", anIPForEachFamily},
		{"ports are the export's", portsOfTheExport},
		{"ports are the union, and a conflict on both", portUnion},
		{"of conflicting ports the oldest win", conflictingPorts},
		{"a headless export is a Headless import everywhere", headlessImport},
		{"a Headless import has no IP", headlessHasNoIP},
		{"an ExternalName export is not valid", externalName},
		{"of conflicting types the oldest wins", conflictingTypes},
		{"EndpointSlices have the MCS labels and go with the export", endpointSlices},
		{"A and AAAA are the ClusterSet's IP", lookupIsTheClusterSetIP},
		{"SRV is one record", lookupOfServiceRecord},
		{"cluster.local is only local", clusterLocalIsLocal},
		{"headless A and AAAA are the ready endpoints", lookupIsReadyEndpoints},
		{"a StatefulSet's Pod has a name", lookupOfHostname},
		{"headless SRV is a record for each endpoint", lookupOfEndpointRecords},
		{"what is not exported is out of reach", unexportedIsOutOfReach},
		{"an export is reached by its name", exportIsReached},
		{"of two Services only the exported is reached", onlyTheExportedIsReached},
		{"a port name with two numbers leads to the oldest", onePortNameTwoNumbers},
		{"each port leads to the cluster that has it", twoPortNames},
	}
}

// count is how many specs the suite has: one that is lost is a failure.
const count = 27

func TestConformance(t *testing.T) {
	// The one that exports first comes later by name: it is not the name that wins.
	t.Run("two clusters", func(t *testing.T) { conform(t, "us", "ap") })
	t.Run("three clusters", func(t *testing.T) { conform(t, "eu", "us", "ap") })
}

// conform plays all specs, some at a time: each has a namespace of its own.
func conform(t *testing.T, clusters ...string) {
	t.Helper()
	var mu sync.Mutex
	var passed []string
	var table strings.Builder
	start := time.Now()
	var group errgroup.Group
	group.SetLimit(3)
	for i, s := range specs() {
		group.Go(func() error {
			t.Run(fmt.Sprintf("%02d %s", i+1, s.name), func(t *testing.T) {
				c := newStage(t, clusters...)
				began := time.Now()
				s.play(c)
				mu.Lock()
				defer mu.Unlock()
				passed = append(passed, s.name)
				fmt.Fprintf(&table, "%02d | %s | %.1fs | %.1fs: %s\n", i+1, s.name, time.Since(began).Seconds(), c.slowest.Seconds(), c.slowestWait)
			})
			return nil
		})
	}
	assert.NoError(t, group.Wait())
	t.Logf("%d specs with %s in %.0fs; what each took, and its longest wait:\n%s", len(passed), strings.Join(clusters, ", "), time.Since(start).Seconds(), table.String())
	assert.Len(t, passed, count, "every spec passes, none is skipped")
}
