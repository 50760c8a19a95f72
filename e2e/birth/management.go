package birth

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/process"
)

// core is the name of the core manager.
const core = "core"

// Management is a management cluster: a control plane with Cluster API's core
// manager and its webhooks.
type Management struct {
	*cluster.Cluster
	// Client is the administrator's, without a cache.
	Client client.Client

	dir string
	// managers are the core one and what was started after it, by name.
	managers map[string]*process.Process
}

// StartManagement starts one; its files are in dir. It returns when the webhooks
// answer. Whoever starts it stops it.
func StartManagement(ctx context.Context, host *cluster.Host, capi build.CAPIManager, dir string) (*Management, error) {
	started, err := host.Start(ctx, cluster.Options{Name: "management"})
	if err != nil {
		return nil, err
	}
	m := &Management{Cluster: started, dir: dir, managers: map[string]*process.Process{}}
	if err := m.start(ctx, capi); err != nil {
		m.Stop()
		return nil, fmt.Errorf("management cluster: %w", err)
	}
	return m, nil
}

func (m *Management) start(ctx context.Context, capi build.CAPIManager) error {
	var err error
	if m.Client, err = client.New(m.Config(), client.Options{}); err != nil {
		return err
	}
	if err := m.Apply(ctx, infrastructureKind()); err != nil {
		return err
	}
	return m.startManager(ctx, manager{CAPIManager: capi, name: core})
}

// Log is the core manager's.
func (m *Management) Log() string { return m.managers[core].Log() }

// Logs are those of all managers, by name.
func (m *Management) Logs() map[string]string {
	logs := map[string]string{}
	for name, each := range m.managers {
		logs[name] = each.Log()
	}
	return logs
}

// Stop ends it for good. A second call does nothing.
func (m *Management) Stop() {
	for _, each := range m.managers {
		each.Kill()
	}
	m.Cluster.Stop()
}

// Apply applies objects here.
func (m *Management) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	return Apply(ctx, m.Client, objects...)
}

// Apply applies objects as `kubectl apply --server-side` does, in their order,
// and waits where a kind is not served yet.
func Apply(ctx context.Context, to client.Client, objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		err := harness.Eventually(ctx, func(ctx context.Context) error {
			return to.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("kubectl"), client.ForceOwnership)
		})
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}
