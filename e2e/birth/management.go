package birth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/process"
)

// Management is a management cluster: a control plane with Cluster API's core
// manager and its webhooks.
type Management struct {
	*cluster.Cluster
	// Client is the administrator's, without a cache.
	Client client.Client

	dir     string
	manager *process.Process
}

// StartManagement starts one; its files are in dir. It returns when the webhooks
// answer. Whoever starts it stops it.
func StartManagement(ctx context.Context, host *cluster.Host, capi build.CAPIManager, dir string) (*Management, error) {
	started, err := host.Start(ctx, cluster.Options{Name: "management"})
	if err != nil {
		return nil, err
	}
	m := &Management{Cluster: started, dir: dir}
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
	ports, err := freePorts(ctx, 2)
	if err != nil {
		return err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(m.path("tls.crt"), certificate, 0o600), os.WriteFile(m.path("tls.key"), key, 0o600)); err != nil {
		return err
	}
	h := hook{url: "https://127.0.0.1:" + ports[0], authority: certificate}
	definitions, err := h.definitions(capi.Config)
	if err != nil {
		return err
	}
	if err := m.Apply(ctx, append(definitions, infrastructureKind())...); err != nil {
		return err
	}
	if err := m.startManager(capi, ports[0], ports[1]); err != nil {
		return err
	}
	// A webhook that is configured before it answers would refuse its manager, too.
	if err := harness.Eventually(ctx, func(ctx context.Context) error { return m.ready(ctx, ports[1]) }); err != nil {
		return m.manager.Explain(err)
	}
	configurations, err := h.configurations(capi.Config)
	if err != nil {
		return err
	}
	return m.Apply(ctx, configurations...)
}

func (m *Management) startManager(capi build.CAPIManager, webhookPort, healthPort string) error {
	var err error
	m.manager, err = process.Start(process.Command{
		Path: capi.Path,
		Args: []string{
			"--webhook-cert-dir=" + m.dir, "--webhook-port=" + webhookPort,
			"--health-addr=127.0.0.1:" + healthPort, "--diagnostics-address=0",
			"--leader-elect=false", "--feature-gates=MachinePool=false",
			"--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
		},
		Env: []string{
			"KUBECONFIG=" + m.KubeconfigFile(),
			"POD_NAMESPACE=" + metav1.NamespaceSystem, "POD_NAME=capi-controller-manager", "POD_UID=00000000-0000-0000-0000-000000000000",
		},
		Log: m.path("manager.log"),
	})
	return err
}

// Log is the manager's.
func (m *Management) Log() string { return m.path("manager.log") }

// Stop ends it for good. A second call does nothing.
func (m *Management) Stop() {
	if m.manager != nil {
		m.manager.Kill()
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

func (m *Management) path(name string) string { return filepath.Join(m.dir, name) }

// freePorts gives ports of loopback that nobody listens on.
func freePorts(ctx context.Context, n int) ([]string, error) {
	var config net.ListenConfig
	var ports []string
	for range n {
		listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		// Closed at the end: so the ports differ.
		defer listener.Close()
		address, _ := listener.Addr().(*net.TCPAddr)
		ports = append(ports, strconv.Itoa(address.Port))
	}
	return ports, nil
}
