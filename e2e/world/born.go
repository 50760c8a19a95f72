package world

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/sources/gittest"
)

// Of gives a member of a cluster in which somebody else installs and runs the
// agent: it reads and waits, and has neither Agent nor files.
func Of(t gittest.T, started *cluster.Cluster) *Member {
	t.Helper()
	m := &Member{Cluster: started, options: MemberOptions{Name: started.Name()}, t: t}
	var err error
	m.Client, err = newClient(started.Config())
	must(t, err)
	return m
}

func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), mcsv1beta1.Install(scheme)); err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}
