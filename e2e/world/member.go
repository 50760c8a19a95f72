package world

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/node"
	"github.com/fleetling/fleetling/sources/gittest"
)

// Namespace is the agent's.
const Namespace = "fleetling-system"

// User is the agent's name in the audit log.
var User = cluster.ServiceAccountUser(Namespace, "fleetling") //nolint:gochecknoglobals // a constant that is computed

// MemberOptions say what a member is.
type MemberOptions struct {
	// Name is the cluster's, ClusterSet is "prod" where it is empty.
	Name, ClusterSet string
	// Labels are what its identity says.
	Labels map[string]string
	// URL is the fleet repository, FirstSigners who may sign its first head.
	URL          string
	FirstSigners []gittest.Key
	// Interval is how often the agent looks at the repository; 0 is 2 s.
	Interval time.Duration
	// Edit changes the agent's configuration file before it is written.
	Edit func(config map[string]any)
	// Node is the range of its Pods; the zero value is no node.
	Node netip.Prefix
	// Proxied puts a proxy between agent and API server.
	Proxied bool
	// Cluster is one that runs already; nil is a new one.
	Cluster *cluster.Cluster
	// Namespace is the network namespace of the agent; empty is the host's.
	Namespace string
	// MemberKey is the private key that the agent finds; nil has it make one.
	MemberKey []byte
}

// Member is a cluster that follows a fleet repository.
type Member struct {
	*cluster.Cluster
	Agent *harness.Agent
	// Client is the administrator's, without a cache.
	Client client.Client
	// Proxy is nil unless it was asked for.
	Proxy *cluster.Proxy

	options MemberOptions
	dir     string
	t       gittest.T
}

// Join starts a cluster, installs manifests/ in it, and starts the agent. All of
// it ends with t.
func Join(ctx context.Context, t gittest.T, host *cluster.Host, options MemberOptions) *Member {
	t.Helper()
	m := Prepare(ctx, t, host, options)
	m.StartAgent(ctx)
	return m
}

// Prepare is Join without the agent.
func Prepare(ctx context.Context, t gittest.T, host *cluster.Host, options MemberOptions) *Member {
	t.Helper()
	started := options.Cluster
	if started == nil {
		var err error
		started, err = host.Start(ctx, cluster.Options{Name: options.Name})
		must(t, err)
		t.Cleanup(started.Stop)
	}
	m := &Member{Cluster: started, options: options, dir: t.TempDir(), t: t}
	var err error
	m.Client, err = newClient(started.Config())
	must(t, err)
	must(t, install(ctx, m.Client))
	if options.MemberKey != nil {
		must(t, m.Client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "fleetling-member-key", Namespace: Namespace},
			Data:       map[string][]byte{"identity": options.MemberKey},
		}))
	}
	if options.Node.IsValid() {
		n, err := node.Start(ctx, started.Config(), node.Options{Name: options.Name + "-node", PodCIDR: options.Node})
		must(t, err)
		t.Cleanup(n.Stop)
	}
	m.writeFiles()
	return m
}

// StartAgent starts the agent, with a token of its ServiceAccount.
func (m *Member) StartAgent(ctx context.Context) {
	m.t.Helper()
	binary, err := harness.Binary(ctx)
	must(m.t, err)
	kubeconfig, err := m.ServiceAccountKubeconfig(ctx, Namespace, "fleetling")
	must(m.t, err)
	if m.options.Proxied {
		m.Proxy, err = m.Cluster.Proxy()
		must(m.t, err)
		m.t.Cleanup(m.Proxy.Close)
		kubeconfig, err = m.Proxy.Kubeconfig(kubeconfig)
		must(m.t, err)
	}
	must(m.t, os.WriteFile(m.path("kubeconfig"), kubeconfig, 0o600))
	m.Agent, err = harness.StartAgent(harness.AgentOptions{
		Binary: binary, Config: m.path("config.yaml"), Kubeconfig: m.path("kubeconfig"), DataDir: m.path("data"),
		Log: m.path("agent.log"), Namespace: m.options.Namespace,
	})
	must(m.t, err)
	m.t.Cleanup(m.Agent.Kill9)
}

func (m *Member) path(name string) string { return filepath.Join(m.dir, name) }

func (m *Member) writeFiles() {
	m.t.Helper()
	must(m.t, os.MkdirAll(m.path("signers"), 0o755))
	must(m.t, os.MkdirAll(m.path("identity"), 0o755))
	for _, key := range m.options.FirstSigners {
		must(m.t, os.WriteFile(filepath.Join(m.path("signers"), key.File()), []byte(key.Public()), 0o644))
	}
	m.WriteIdentity(m.options.Labels)
	m.WriteConfig(m.options.Edit)
}

// WriteIdentity writes the mounted identity with these labels; nil is none.
func (m *Member) WriteIdentity(labels map[string]string) {
	m.t.Helper()
	if labels == nil {
		labels = map[string]string{}
	}
	clusterSet := m.options.ClusterSet
	if clusterSet == "" {
		clusterSet = "prod"
	}
	m.writeYAML("identity/identity.yaml", map[string]any{
		"apiVersion": "config.fleetling.dev/v1alpha1", "kind": "Identity",
		"name": m.options.Name, "clusterSet": clusterSet, "labels": labels,
	})
}

// RemoveIdentity takes the mounted identity away.
func (m *Member) RemoveIdentity() {
	m.t.Helper()
	must(m.t, os.Remove(m.path("identity/identity.yaml")))
}

// WriteConfig writes the agent's configuration, as edit changes it.
func (m *Member) WriteConfig(edit func(config map[string]any)) {
	m.t.Helper()
	interval := m.options.Interval
	if interval == 0 {
		interval = 2 * time.Second
	}
	config := map[string]any{
		"apiVersion": "config.fleetling.dev/v1alpha1", "kind": "AgentConfiguration",
		"source":   map[string]any{"url": m.options.URL, "branch": "refs/heads/main", "interval": interval.String(), "timeout": "1m"},
		"trust":    map[string]any{"signers": m.path("signers")},
		"identity": m.path("identity/identity.yaml"),
		"listen":   map[string]any{"metrics": "0", "health": "0"},
	}
	if edit != nil {
		edit(config)
	}
	m.writeYAML("config.yaml", config)
}

func (m *Member) writeYAML(name string, content any) {
	m.t.Helper()
	text, err := yaml.Marshal(content)
	must(m.t, err)
	must(m.t, os.WriteFile(m.path(name), text, 0o644))
}

// Self reads member/self.
func (m *Member) Self(ctx context.Context) (v1alpha1.Member, error) {
	var self v1alpha1.Member
	return self, m.Client.Get(ctx, client.ObjectKey{Name: v1alpha1.Self}, &self)
}

// AddOn reads one AddOn.
func (m *Member) AddOn(ctx context.Context, name string) (v1alpha1.AddOn, error) {
	var addOn v1alpha1.AddOn
	return addOn, m.Client.Get(ctx, client.ObjectKey{Name: name}, &addOn)
}

// Ready waits until member/self is Ready at a revision. Its error says what it
// is instead.
func (m *Member) Ready(ctx context.Context, revision string) error {
	return m.settles(ctx, func(self v1alpha1.Member) error {
		switch {
		case self.Status.AppliedRevision != revision:
			return fmt.Errorf("applied is %q, not %q", self.Status.AppliedRevision, revision)
		case !meta.IsStatusConditionTrue(self.Status.Conditions, v1alpha1.Ready):
			return fmt.Errorf("not ready")
		}
		return nil
	})
}

// Condition waits until a condition of member/self has a reason.
func (m *Member) Condition(ctx context.Context, kind, reason string) error {
	return m.settles(ctx, func(self v1alpha1.Member) error {
		if c := meta.FindStatusCondition(self.Status.Conditions, kind); c == nil || c.Reason != reason {
			return fmt.Errorf("%s is not %s", kind, reason)
		}
		return nil
	})
}

// AddOnCondition waits until a condition of an AddOn has a reason.
func (m *Member) AddOnCondition(ctx context.Context, name, kind, reason string) error {
	return m.Eventually(ctx, func(ctx context.Context) error {
		addOn, err := m.AddOn(ctx, name)
		if err != nil {
			return err
		}
		if c := meta.FindStatusCondition(addOn.Status.Conditions, kind); c == nil || c.Reason != reason {
			return fmt.Errorf("%s of add-on %s is not %s: %s", kind, name, reason, words(addOn.Status.Conditions))
		}
		return nil
	})
}

// Reconcile asks for a pass and waits until it is done.
func (m *Member) Reconcile(ctx context.Context) error {
	at := time.Now().Format(time.RFC3339Nano)
	self, err := m.Self(ctx)
	if err != nil {
		return err
	}
	patch := client.MergeFrom(self.DeepCopy())
	self.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: at}
	if err := m.Client.Patch(ctx, &self, patch); err != nil {
		return err
	}
	return m.settles(ctx, func(self v1alpha1.Member) error {
		if self.Status.LastHandledReconcileAt != at {
			return fmt.Errorf("the pass asked for at %s is not done", at)
		}
		return nil
	})
}

func (m *Member) settles(ctx context.Context, check func(v1alpha1.Member) error) error {
	return m.Eventually(ctx, func(ctx context.Context) error {
		self, err := m.Self(ctx)
		if err != nil {
			return err
		}
		if err := check(self); err != nil {
			return fmt.Errorf("%w: %s", err, words(self.Status.Conditions))
		}
		return nil
	})
}

// Eventually waits for check, and adds the end of the agent's log to its error.
func (m *Member) Eventually(ctx context.Context, check func(context.Context) error) error {
	err := harness.Eventually(ctx, check)
	if err == nil || m.Agent == nil {
		return err
	}
	logs, logErr := m.Agent.Logs()
	if logErr != nil {
		return err
	}
	return fmt.Errorf("%s: %w\nagent: ...%s", m.options.Name, err, logs[max(0, len(logs)-4000):])
}

// Absent waits until an object is gone.
func (m *Member) Absent(ctx context.Context, object client.Object) error {
	return m.Eventually(ctx, func(ctx context.Context) error {
		err := m.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("%T %s is still there", object, client.ObjectKeyFromObject(object))
	})
}

// ConfigMap waits until a ConfigMap has a value under a key, and gives it.
func (m *Member) ConfigMap(ctx context.Context, namespace, name, key, value string) (corev1.ConfigMap, error) {
	var cm corev1.ConfigMap
	return cm, m.Eventually(ctx, func(ctx context.Context) error {
		if err := m.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &cm); err != nil {
			return err
		}
		if cm.Data[key] != value {
			return fmt.Errorf("ConfigMap %s/%s: %s is %q, not %q", namespace, name, key, cm.Data[key], value)
		}
		return nil
	})
}

func must(t gittest.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}
