package mainjob_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/world"
)

// death is a moment of a pass at which the agent is killed.
type death struct {
	name string
	// rule matches the request that marks the moment.
	match func(*http.Request) bool
	// after: the request was done, and the agent doesn't know. Else it never left.
	after bool
	// nth request that matches.
	nth int
}

func request(method, path string) func(*http.Request) bool { return cluster.Requests(method, path) }

func objects(r *http.Request) bool {
	return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/namespaces/shop/configmaps/")
}

// TestKilledAtAnyStepItConverges kills the agent with SIGKILL at each step of a
// pass that changes, adds and removes objects, and starts it again: nothing is
// lost, nothing is wrongly pruned, nothing is left that no inventory holds.
func TestKilledAtAnyStepItConverges(t *testing.T) {
	deaths := []death{
		{name: "while the snapshot is written", match: request(http.MethodPost, "/secrets")},
		{name: "after the snapshot, before the pin", match: request(http.MethodPut, "/configmaps/fleetling-pin")},
		{name: "after the pin", match: request(http.MethodPut, "/configmaps/fleetling-pin"), after: true},
		{name: "before the inventory", match: request(http.MethodPut, "/configmaps/fleetling-inventory-base-0")},
		{name: "after the inventory", match: request(http.MethodPut, "/configmaps/fleetling-inventory-base-0"), after: true},
		{name: "before the third apply", match: objects, nth: 3},
		{name: "after the third apply", match: objects, nth: 3, after: true},
		{name: "after the first delete", match: request(http.MethodDelete, "/namespaces/shop/configmaps/"), after: true},
		{name: "before the second delete", match: request(http.MethodDelete, "/namespaces/shop/configmaps/"), nth: 2},
		{name: "before the inventory shrinks", match: request(http.MethodPut, "/configmaps/fleetling-inventory-base-0"), nth: 2},
		{name: "before the status", match: request(http.MethodPatch, "/members/self/status")},
		{name: "after the status", match: request(http.MethodPatch, "/members/self/status"), after: true},
	}
	s := newScenario(t, 1)
	s.addOns("{name: base, path: addons/base}")
	s.fleet.Write("addons/base/namespace.yaml", namespace("shop"))
	for i := range 14 {
		s.fleet.Write(fmt.Sprintf("addons/base/same-%02d.yaml", i), configMap(fmt.Sprintf("same-%02d", i), "same"))
	}
	s.round(0)
	first := s.fleet.Push("round 0")
	s.join(func(o *world.MemberOptions) { o.Proxied = true })
	s.do(s.m.Ready(t.Context(), first))
	stay := s.sameUIDs()

	for i, d := range deaths {
		t.Run(d.name, func(t *testing.T) {
			died := s.killAt(d)
			s.round(i + 1)
			revision := s.fleet.Push(fmt.Sprint("round ", i+1))
			select {
			case <-died:
			case <-t.Context().Done():
			}
			<-s.m.Agent.Ended()
			require.NoError(t, s.m.Agent.Restart(i%2 == 0))
			require.NoError(t, s.m.Ready(t.Context(), revision))
			s.converged(t, i+1, stay)
		})
	}
	t.Run("while it fetches", func(t *testing.T) {
		died := make(chan struct{})
		s.fleet.Server.SetBefore(func(r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "git-upload-pack") && r.Method == http.MethodPost {
				s.fleet.Server.SetBefore(nil)
				s.m.Agent.Kill9()
				close(died)
			}
		})
		s.round(len(deaths) + 1)
		revision := s.fleet.Push("the last round")
		<-died
		<-s.m.Agent.Ended()
		require.NoError(t, s.m.Agent.Restart(false))
		require.NoError(t, s.m.Ready(t.Context(), revision))
		s.converged(t, len(deaths)+1, stay)
	})
}

// round writes what changes from round to round: three objects get other
// content, two are new, and the two of the round before go.
func (s *scenario) round(n int) {
	for i := range 3 {
		s.fleet.Write(fmt.Sprintf("addons/base/changed-%d.yaml", i), configMap(fmt.Sprint("changed-", i), fmt.Sprint(n)))
	}
	for i := range 2 {
		s.fleet.Remove(fmt.Sprintf("addons/base/new-%d-%d.yaml", n-1, i))
		s.fleet.Write(fmt.Sprintf("addons/base/new-%d-%d.yaml", n, i), configMap(fmt.Sprintf("new-%d-%d", n, i), fmt.Sprint(n)))
	}
}

// killAt kills the agent at a moment, and tells when it has.
func (s *scenario) killAt(d death) <-chan struct{} {
	died := make(chan struct{})
	seen := 0
	kill := func() {
		s.m.Agent.Kill9()
		close(died)
	}
	rule := cluster.Rule{Match: func(r *http.Request) bool {
		if d.match(r) {
			seen++
			return seen == max(d.nth, 1)
		}
		return false
	}, Times: 1}
	if d.after {
		rule.After = func(*http.Request, int) { kill() }
	} else {
		rule.Drop, rule.Before = true, func(*http.Request) { kill() }
	}
	s.m.Proxy.On(rule)
	return died
}

func (s *scenario) sameUIDs() map[string]string {
	s.Helper()
	same := map[string]string{}
	for name, uid := range s.uids() {
		if strings.HasPrefix(name, "same-") {
			same[name] = uid
		}
	}
	return same
}

// converged compares the cluster with the round: what is there, what it holds,
// what never changed, and what the inventory knows.
func (s *scenario) converged(t *testing.T, n int, stay map[string]string) {
	t.Helper()
	want := map[string]string{}
	for name := range stay {
		want[name] = "same"
	}
	for i := range 3 {
		want[fmt.Sprint("changed-", i)] = fmt.Sprint(n)
	}
	for i := range 2 {
		want[fmt.Sprintf("new-%d-%d", n, i)] = fmt.Sprint(n)
		require.NoError(t, s.m.Absent(t.Context(), shop(fmt.Sprintf("new-%d-%d", n-1, i))))
	}
	got := map[string]string{}
	var list corev1.ConfigMapList
	require.NoError(t, s.m.Client.List(t.Context(), &list, client.InNamespace("shop"), client.HasLabels{"fleetling.dev/addon"}))
	for _, cm := range list.Items {
		got[cm.Name] = cm.Data["value"]
	}
	assert.Equal(t, want, got, "0 lost, 0 orphans")
	assert.Equal(t, stay, s.sameUIDs(), "0 wrongly pruned: what stays is the same object")
	require.NoError(t, s.m.Eventually(t.Context(), func(ctx context.Context) error {
		if held, intended := s.inventory(ctx, "base"); held != len(want)+1 || intended != 0 {
			return fmt.Errorf("the inventory holds %d and intends %d, not %d and 0", held, intended, len(want)+1)
		}
		return nil
	}))
}
