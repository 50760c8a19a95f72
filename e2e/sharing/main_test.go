package sharing_test

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetling/fleetling/discovery/record"
	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/clusterset"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/world"
	"github.com/fleetling/fleetling/sources/gittest"
)

// w is started once. Each test has a namespace of its own in its clusters, and
// mends what it breaks. They don't run at the same time.
var w *fleetWorld

// fleetWorld is three members of one ClusterSet, over the git carrier.
type fleetWorld struct {
	world.Scope
	set      *clusterset.Set
	fleet    *world.Fleet
	registry *gittest.HTTPServer
	members  []*world.Member
	revision string
}

var names = []string{"ap", "eu", "us"}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	log.SetLogger(logr.Discard())
	w = &fleetWorld{}
	defer w.CleanUp()
	defer func() {
		if failure, ok := recover().(world.Fatal); ok {
			fmt.Fprintln(os.Stderr, string(failure))
			code = 1
		}
	}()
	w.start(context.Background())
	return m.Run()
}

func (w *fleetWorld) must(err error) {
	if err != nil {
		w.Fatalf("%v", err)
	}
}

func (w *fleetWorld) start(ctx context.Context) {
	release, err := harness.Places(ctx, len(names))
	w.must(err)
	w.Cleanup(release)
	host, err := harness.NewHost(ctx)
	w.must(err)
	w.Cleanup(host.Stop)
	w.set, err = clusterset.Start(ctx, host, clusterset.Options{Names: names, Progress: os.Stderr})
	w.must(err)
	w.Cleanup(func() {
		if err := w.set.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	w.serve(ctx)
	w.join(ctx, host)
}

// serve makes fleet and registry repositories, at the hub.
func (w *fleetWorld) serve(ctx context.Context) {
	w.fleet = world.NewFleet(w)
	w.registry = world.NewRegistry(ctx, w)
}

// at gives a URL as clusters see it.
func (w *fleetWorld) at(ctx context.Context, server *gittest.HTTPServer) string {
	address, err := w.set.Publish(ctx, server.Address())
	w.must(err)
	u, err := url.Parse(server.URL)
	w.must(err)
	u.Host = address
	return u.String()
}

func (w *fleetWorld) join(ctx context.Context, host *cluster.Host) {
	fleetURL := w.at(ctx, w.fleet.Server)
	w.fleet.Write("fleetling.yaml", fmt.Sprintf(`apiVersion: config.fleetling.dev/v1alpha1
kind: Fleet
clusterSet: prod
clusters: {files: ["clusters/*.yaml"], unlisted: deny}
registry: {git: {url: %q}}
addons:
- {name: base, path: addons/base}
`, w.at(ctx, w.registry)))
	w.fleet.Write("addons/base/about.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: about, namespace: default}\n")
	keys := map[string][]byte{}
	for _, c := range w.set.Clusters {
		private, public, err := record.NewKey()
		w.must(err)
		keys[c.Name()] = private
		w.fleet.Write("clusters/"+c.Name()+".yaml", entry(c.Name(), public, c.Site.Pods()))
	}
	w.revision = w.fleet.Push("three members")
	for _, c := range w.set.Clusters {
		w.members = append(w.members, world.Join(ctx, w, host, world.MemberOptions{
			Name: c.Name(), URL: fleetURL, FirstSigners: []gittest.Key{w.fleet.Key},
			Cluster: c.Cluster, Namespace: c.Site.Name(), MemberKey: keys[c.Name()],
		}))
	}
}

func entry(name, key string, pods netip.Prefix) string {
	return fmt.Sprintf(`apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata:
  name: %s
  annotations: {fleetling.dev/member-keys: %q}
spec: {clusterNetwork: {pods: {cidrBlocks: [%q]}}}
`, name, key, pods)
}

// member gives a member by its name, and the cluster that it is.
func (w *fleetWorld) member(name string) (*world.Member, *clusterset.Cluster) {
	for i, n := range names {
		if n == name {
			return w.members[i], w.set.Cluster(name)
		}
	}
	w.Fatalf("no member %s of %s", name, strings.Join(names, ", "))
	return nil, nil
}
