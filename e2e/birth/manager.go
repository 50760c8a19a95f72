package birth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/process"
)

// manager is one of Cluster API's, with its own kinds and webhooks.
type manager struct {
	build.CAPIManager
	// name is that of its files, and keeps its webhook configurations from those
	// of others, which have the same names.
	name string
	// env is what it has beside what all have.
	env []string
}

// startManager returns when the manager's webhooks are asked.
func (m *Management) startManager(ctx context.Context, each manager) error {
	dir := filepath.Join(m.dir, each.name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	ports, err := freePorts(ctx, 2)
	if err != nil {
		return err
	}
	h, err := newHook(dir, ports[0])
	if err != nil {
		return err
	}
	definitions, err := h.definitions(each.Config)
	if err != nil {
		return err
	}
	if err := m.Apply(ctx, definitions...); err != nil {
		return err
	}
	started, err := process.Start(each.command(m.KubeconfigFile(), dir, ports[0], ports[1]))
	if err != nil {
		return err
	}
	m.managers[each.name] = started
	// A webhook that is configured before it answers would refuse its manager, too.
	if err := harness.Eventually(ctx, func(ctx context.Context) error { return ready(ctx, started, ports[1]) }); err != nil {
		return started.Explain(err)
	}
	configurations, err := h.configurations(each.Config)
	if err != nil {
		return err
	}
	for _, o := range configurations {
		o.SetName(each.name + "-" + o.GetName())
	}
	return m.Apply(ctx, configurations...)
}

// newHook makes the certificate of a manager that listens on a port.
func newHook(dir, port string) (hook, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return hook{}, err
	}
	return hook{url: "https://127.0.0.1:" + port, authority: certificate}, errors.Join(
		os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
}

func (each manager) command(kubeconfig, dir, webhookPort, healthPort string) process.Command {
	return process.Command{
		Path: each.Path,
		Args: []string{
			"--webhook-cert-dir=" + dir, "--webhook-port=" + webhookPort,
			"--health-addr=127.0.0.1:" + healthPort, "--diagnostics-address=0",
			"--leader-elect=false", "--feature-gates=MachinePool=false",
			"--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
		},
		Env: append([]string{
			"KUBECONFIG=" + kubeconfig,
			"POD_NAMESPACE=" + metav1.NamespaceSystem, "POD_NAME=capi-" + each.name, "POD_UID=00000000-0000-0000-0000-000000000000",
		}, each.env...),
		Log: filepath.Join(dir, "manager.log"),
	}
}

// ready asks a manager for its health.
func ready(ctx context.Context, started *process.Process, port string) error {
	if !started.Alive() {
		return fmt.Errorf("the manager has ended: %w", started.Wait())
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return err
}

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
