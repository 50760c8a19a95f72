package sharing_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// What the conformance suite gives an implementation.
const (
	importLimit   = 20 * time.Second
	lookupLimit   = 20 * time.Second
	endpointLimit = 60 * time.Second
	steady        = 5 * time.Second
)

// hello is the Service of every spec.
const hello = "hello"

// stage is where a spec is played. All clusters import; the first exports, and
// where there is something to disagree on the second does, later.
type stage struct {
	*testing.T
	all           []*side
	first, second *side
	slowest       time.Duration
	slowestWait   string
}

func newStage(t *testing.T, clusters ...string) *stage {
	t.Helper()
	all := sides(t, clusters...)
	return &stage{T: t, all: all, first: all[0], second: all[1]}
}

// within waits for check and says how long that took.
func (c *stage) within(s *side, limit time.Duration, what string, check func(context.Context) error) {
	c.Helper()
	what = s.cluster.Name() + ": " + what
	ctx, cancel := context.WithTimeoutCause(c.Context(), limit, fmt.Errorf("%s: not within %s", what, limit))
	defer cancel()
	start := time.Now()
	if err := s.Eventually(ctx, check); err != nil {
		require.NoError(c.T, err, s.peers())
	}
	took := time.Since(start)
	c.Logf("%s: %.1fs of %s", what, took.Seconds(), limit)
	if took >= c.slowest {
		c.slowest, c.slowestWait = took, what
	}
}

// steadily wants check to hold all the time.
func (c *stage) steadily(s *side, what string, check func(context.Context) error) {
	c.Helper()
	end := time.NewTimer(steady)
	defer end.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		require.NoError(c.T, check(c.Context()), "%s: %s", s.cluster.Name(), what)
		select {
		case <-end.C:
			return
		case <-again.C:
		}
	}
}

// service edits the Service as all specs have it.
func service(edits ...func(*corev1.Service)) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Labels, s.Annotations = map[string]string{"of-service": "yes"}, map[string]string{"of-service": "yes"}
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(10))}}
		s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyPreferDualStack)
		for _, edit := range edits {
			edit(s)
		}
	}
}

func headless(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }

// spread lets every connection choose its server anew: of two that were wrongly
// there both would be met.
func spread(s *corev1.Service) { s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = "", nil }

func ports(all ...corev1.ServicePort) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Ports = all }
}

// deploy runs the server in a cluster, with its Service.
func (c *stage) deploy(s *side, edits ...func(*corev1.Service)) {
	c.Helper()
	s.backend(hello, 1, service(edits...))
}

// exportWith exports with labels and annotations.
func (c *stage) exportWith(s *side, exported map[string]string) *v1beta1.ServiceExport {
	c.Helper()
	e := &v1beta1.ServiceExport{ObjectMeta: s.meta(hello), Spec: v1beta1.ServiceExportSpec{ExportedLabels: exported, ExportedAnnotations: exported}}
	e.Labels, e.Annotations = map[string]string{"of-export": "yes"}, map[string]string{"of-export": "yes"}
	require.NoError(c.T, s.Client.Create(c.Context(), e))
	return e
}

// dispute has two clusters export what differs, the first one earlier by at least
// the second that times of creation are told by.
func (c *stage) dispute(first, second func(*corev1.Service), exported ...map[string]string) {
	c.Helper()
	exported = append(exported, nil, nil)
	c.deploy(c.first, first)
	e := c.exportWith(c.first, exported[0])
	c.imported(c.first)
	c.within(c.first, steady, "is older", func(context.Context) error {
		if time.Since(e.CreationTimestamp.Time) < 1100*time.Millisecond {
			return errors.New("this second")
		}
		return nil
	})
	c.deploy(c.second, second)
	c.exportWith(c.second, exported[1])
}

// conflicted waits for the conflict on both exports.
func (c *stage) conflicted(reasons ...v1beta1.ServiceExportConditionReason) {
	c.Helper()
	for _, s := range []*side{c.first, c.second} {
		found := c.condition(s, v1beta1.ServiceExportConditionConflict, metav1.ConditionTrue)
		for _, reason := range reasons {
			require.Contains(c.T, found.Reason, string(reason))
		}
	}
}

// condition waits for an export's.
func (c *stage) condition(s *side, kind v1beta1.ServiceExportConditionType, status metav1.ConditionStatus) metav1.Condition {
	c.Helper()
	var found metav1.Condition
	c.within(s, importLimit, fmt.Sprintf("%s=%s", kind, status), func(ctx context.Context) error {
		e := &v1beta1.ServiceExport{}
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: hello}, e); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(e.Status.Conditions, string(kind))
		if condition == nil || condition.Status != status {
			return fmt.Errorf("%s is not %s: %+v", kind, status, e.Status.Conditions)
		}
		found = *condition
		return nil
	})
	return found
}

// imported waits for the import of which all checks hold.
func (c *stage) imported(s *side, checks ...func(*v1beta1.ServiceImport) error) *v1beta1.ServiceImport {
	c.Helper()
	found := &v1beta1.ServiceImport{}
	c.within(s, importLimit, "ServiceImport", func(ctx context.Context) error {
		if err := c.lookAt(ctx, s, found); err != nil {
			return err
		}
		for _, check := range checks {
			if err := check(found); err != nil {
				return err
			}
		}
		return nil
	})
	return found
}

func (*stage) lookAt(ctx context.Context, s *side, found *v1beta1.ServiceImport) error {
	return s.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: hello}, found)
}

func (c *stage) stays(s *side) {
	c.Helper()
	c.steadily(s, "the ServiceImport stays", func(ctx context.Context) error { return c.lookAt(ctx, s, &v1beta1.ServiceImport{}) })
}

// absent is that there is no import.
func (c *stage) absent(ctx context.Context, s *side) error {
	err := c.lookAt(ctx, s, &v1beta1.ServiceImport{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return cmp.Or(err, errors.New("the ServiceImport is there"))
}

// unexport ends the exports of these clusters and waits until no cluster imports.
func (c *stage) unexport(exporters ...*side) {
	c.Helper()
	for _, s := range exporters {
		s.unexport(hello)
	}
	for _, s := range c.all {
		c.within(s, importLimit, "no ServiceImport", func(ctx context.Context) error { return c.absent(ctx, s) })
	}
}

// families waits for the import's IP families.
func (c *stage) families(s *side) []corev1.IPFamily {
	c.Helper()
	return c.imported(s, func(i *v1beta1.ServiceImport) error {
		if len(i.Spec.IPFamilies) == 0 {
			return errors.New("no IP family")
		}
		return nil
	}).Spec.IPFamilies
}

// exportedBy checks who exports.
func exportedBy(exporters ...*side) func(*v1beta1.ServiceImport) error {
	return func(i *v1beta1.ServiceImport) error {
		var want, found []string
		for _, s := range exporters {
			want = append(want, s.cluster.Name())
		}
		for _, cluster := range i.Status.Clusters {
			found = append(found, cluster.Cluster)
		}
		slices.Sort(want)
		if !slices.Equal(want, found) {
			return fmt.Errorf("exported by %v, not by %v", found, want)
		}
		return nil
	}
}

// hasPorts checks the ports, in any order.
func hasPorts(want ...corev1.ServicePort) func(*v1beta1.ServiceImport) error {
	return func(i *v1beta1.ServiceImport) error {
		var wanted []v1beta1.ServicePort
		for _, p := range want {
			wanted = append(wanted, v1beta1.ServicePort{Name: p.Name, Protocol: p.Protocol, Port: p.Port, AppProtocol: p.AppProtocol})
		}
		byName := func(a, b v1beta1.ServicePort) int { return strings.Compare(a.Name, b.Name) }
		return differ("ports", slices.SortedFunc(slices.Values(wanted), byName), slices.SortedFunc(slices.Values(i.Spec.Ports), byName))
	}
}

// hasMetadata checks that labels and annotations hold all of one map and nothing
// of the others.
func hasMetadata(want map[string]string, never ...map[string]string) func(*v1beta1.ServiceImport) error {
	return func(i *v1beta1.ServiceImport) error {
		for _, found := range []map[string]string{i.Labels, i.Annotations} {
			for key, value := range want {
				if found[key] != value {
					return fmt.Errorf("%s=%s is missing in %v", key, value, found)
				}
			}
			for _, other := range never {
				for key := range maps.Keys(other) {
					if _, there := found[key]; there {
						return fmt.Errorf("%s is in %v", key, found)
					}
				}
			}
		}
		return nil
	}
}
