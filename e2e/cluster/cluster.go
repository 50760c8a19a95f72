package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fleetling/fleetling/e2e/process"
)

// maxClusters is how many Service ranges there are to give, 10.0.0.0/16 to
// 10.249.0.0/16.
const maxClusters = 250

// Options says what a cluster is.
type Options struct {
	// Name is in its kubeconfigs and errors.
	Name string
	// ServiceCIDR is the range of its Services; empty is one that no other
	// cluster of the host has by default.
	ServiceCIDR string
}

// Cluster is a control plane that runs. Host.Stop stops it too.
type Cluster struct {
	name        string
	dir         string
	prefix      string
	serviceCIDR string
	port        int
	host        *Host
	credentials credentials
	client      kubernetes.Interface

	apiServer         *process.Process
	controllerManager *process.Process
}

// Start starts a cluster and returns when its API server is ready and its
// controllers work. ctx bounds only the start.
func (h *Host) Start(ctx context.Context, options Options) (*Cluster, error) {
	c := &Cluster{name: options.Name, host: h}
	number, err := h.add(c)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.name, err)
	}
	c.dir = filepath.Join(h.dir, strconv.Itoa(number)+"-"+c.name)
	c.prefix = "/" + strconv.Itoa(number)
	c.serviceCIDR = options.ServiceCIDR
	if c.serviceCIDR == "" {
		c.serviceCIDR = fmt.Sprintf("10.%d.0.0/16", number)
	}
	if err := c.start(ctx); err != nil {
		c.Stop()
		return nil, fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return err
	}
	var err error
	if c.port, err = freePort(ctx); err != nil {
		return err
	}
	if c.credentials, err = newCredentials(c.dir); err != nil {
		return err
	}
	if err := c.writeKubeconfigs(); err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(c.Config()); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	if err := c.startControllerManager(ctx); err != nil {
		return fmt.Errorf("kube-controller-manager: %w", err)
	}
	return nil
}

func (c *Cluster) startAPIServer(ctx context.Context) error {
	var err error
	c.apiServer, err = start(c.host.programs.APIServer, c.path("kube-apiserver.log"),
		"--etcd-servers="+c.host.endpoint,
		"--etcd-prefix="+c.prefix,
		"--bind-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(c.port),
		"--advertise-address=192.0.2.1",
		"--service-cluster-ip-range="+c.serviceCIDR,
		"--tls-cert-file="+c.path(servingFile),
		"--tls-private-key-file="+c.path(servingKeyFile),
		"--token-auth-file="+c.path(tokensFile),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file="+c.path(accountKeyFile),
		"--service-account-key-file="+c.path(accountKeyFile),
		"--authorization-mode=RBAC,Node",
		"--allow-privileged=true",
		"--audit-policy-file="+c.path(auditPolicyFile),
		"--audit-log-path="+c.path(auditFile),
		"--audit-log-maxsize=0",
	)
	if err != nil {
		return err
	}
	return await(ctx, c.apiServer, func(ctx context.Context) error {
		return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// startControllerManager waits for the two objects that every Pod needs. It
// runs without leader election, so that it outlives a paused API server.
func (c *Cluster) startControllerManager(ctx context.Context) error {
	var err error
	c.controllerManager, err = start(c.host.programs.ControllerManager, c.path("kube-controller-manager.log"),
		"--kubeconfig="+c.path(controllersFile),
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+c.path(accountKeyFile),
		"--root-ca-file="+c.path(caFile),
		// Its default is outside the host's folder, and is made where missing.
		"--flex-volume-plugin-dir="+c.path("volume"),
		// The default of 20 requests a second makes its start four times longer.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
	if err != nil {
		return err
	}
	return await(ctx, c.controllerManager, func(ctx context.Context) error {
		const namespace = metav1.NamespaceDefault
		if _, err := c.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err
		}
		_, err := c.client.CoreV1().ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err
	})
}

// Pause takes the API server away, as if its machine lost power. Its data stays.
func (c *Cluster) Pause() { c.apiServer.Kill() }

// Resume brings the API server back, on the same address with the same data.
func (c *Cluster) Resume(ctx context.Context) error {
	if err := c.startAPIServer(ctx); err != nil {
		return fmt.Errorf("cluster %s: kube-apiserver: %w", c.name, err)
	}
	return nil
}

// Stop ends the cluster's processes. A second call does nothing.
func (c *Cluster) Stop() {
	for _, p := range []*process.Process{c.controllerManager, c.apiServer} {
		if p != nil {
			p.Kill()
		}
	}
}

// Name is the cluster's name.
func (c *Cluster) Name() string { return c.name }

// Server is the API server's URL.
func (c *Cluster) Server() string { return "https://" + loopback(c.port) }

// Memory is what the cluster's processes take, by component.
func (c *Cluster) Memory() (map[string]process.Memory, error) {
	memory := map[string]process.Memory{}
	for name, p := range map[string]*process.Process{
		"etcd (shared)": c.host.etcd, "kube-apiserver": c.apiServer, "kube-controller-manager": c.controllerManager,
	} {
		m, err := p.Memory()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		memory[name] = m
	}
	return memory, nil
}

// Config is the administrator's, without a limit of its own on requests.
func (c *Cluster) Config() *rest.Config {
	return &rest.Config{
		Host: c.Server(), BearerToken: c.credentials.admin, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.credentials.ca},
	}
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }
