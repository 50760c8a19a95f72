// Package mainjob_test is the main job, end to end: a signed commit becomes the
// state of a real cluster, and stays it, whatever happens meanwhile.
package mainjob_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/world"
	"github.com/fleetling/fleetling/sources/gittest"
)

var host *cluster.Host

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())
	started, err := harness.NewHost(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer started.Stop()
	host = started
	return m.Run()
}

// scenario is one test's own cluster and fleet repository.
type scenario struct {
	*testing.T
	fleet *world.Fleet
	m     *world.Member
}

// newScenario waits for room on the machine and makes a fleet repository.
// Nothing is committed, and no cluster is started.
func newScenario(t *testing.T, clusters int) *scenario {
	t.Helper()
	t.Parallel()
	release, err := harness.Places(t.Context(), clusters)
	require.NoError(t, err)
	t.Cleanup(release)
	return &scenario{T: t, fleet: world.NewFleet(t)}
}

// join starts the one member, cluster "one" in region ap-south.
func (s *scenario) join(change ...func(*world.MemberOptions)) {
	s.Helper()
	s.m = s.member("one", change...)
}

func (s *scenario) member(name string, change ...func(*world.MemberOptions)) *world.Member {
	s.Helper()
	options := world.MemberOptions{
		Name: name, Labels: map[string]string{"region": "ap-south"}, URL: s.fleet.Server.URL, FirstSigners: []gittest.Key{s.fleet.Key},
	}
	for _, f := range change {
		f(&options)
	}
	return world.Join(s.Context(), s.T, host, options)
}

// do requires a wait to end well.
func (s *scenario) do(err error) {
	s.Helper()
	require.NoError(s, err)
}

// addOns writes a fleetling.yaml with these add-ons, one YAML flow map each.
func (s *scenario) addOns(addOns ...string) {
	text := "apiVersion: config.fleetling.dev/v1alpha1\nkind: Fleet\nclusterSet: prod\n" +
		"clusters: {files: [\"clusters/*.yaml\"], unlisted: identity}\n" +
		"labels:\n  region: {required: true, values: [ap-south, eu-west]}\naddons:\n"
	for _, a := range addOns {
		text += "- " + a + "\n"
	}
	s.fleet.Write("fleetling.yaml", text)
	s.entry("one", "ap-south")
}

// entry writes a cluster entry.
func (s *scenario) entry(name, region string) {
	s.fleet.Write("clusters/"+name+".yaml",
		"apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata:\n  name: "+name+"\n  labels: {region: "+region+"}\n")
}

// configMap is the YAML of a ConfigMap in namespace shop.
func configMap(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\ndata: {value: \"" + value + "\"}\n"
}

func namespace(name string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n"
}

// uid reads the UID of a ConfigMap in namespace shop.
func uid(s *scenario, m *world.Member, name string) types.UID {
	s.Helper()
	cm := &corev1.ConfigMap{}
	s.do(m.Client.Get(s.Context(), client.ObjectKey{Namespace: "shop", Name: name}, cm))
	return cm.UID
}

func shop(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}
