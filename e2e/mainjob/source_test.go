package mainjob_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/cluster"
	"github.com/fleetling/fleetling/e2e/world"
)

func TestB24_WhateverARemoteDoesToTheBranchWhatIsAppliedStays(t *testing.T) {
	s := newScenario(t, 1)
	s.join()
	s.do(s.m.Condition(t.Context(), v1alpha1.SourceReady, "BranchNotFound")) // an empty repository
	s.addOns("{name: base, path: addons/base}")
	s.fleet.Write("addons/base/ns.yaml", namespace("shop"))
	s.fleet.Write("addons/base/cm.yaml", configMap("cm", "one"))
	first := s.fleet.Push("the branch appears")
	s.do(s.m.Ready(t.Context(), first))
	before := s.versions()

	s.fleet.Git("checkout", "--quiet", "--detach")
	s.fleet.Git("branch", "--delete", "--force", "main")
	s.do(s.m.Condition(t.Context(), v1alpha1.SourceReady, "BranchNotFound"))
	s.fleet.Git("tag", "main", first+"~0") // a tag of the branch's name is not the branch
	s.do(s.m.Reconcile(t.Context()))
	s.do(s.m.Condition(t.Context(), v1alpha1.SourceReady, "BranchNotFound"))
	s.fleet.Git("tag", "--delete", "main")
	s.fleet.Git("checkout", "--quiet", "-b", "main")
	s.do(s.m.Condition(t.Context(), v1alpha1.SourceReady, "Fetched"))
	assert.Equal(t, before, s.versions())

	// The same tree in a new commit: no object is written.
	s.do(s.m.Ready(t.Context(), s.fleet.Push("the same tree")))
	assert.Equal(t, before, s.versions())

	// Many commits in one interval: the newest counts.
	for i := range 50 {
		s.fleet.Write("addons/base/cm.yaml", configMap("cm", fmt.Sprint(i)))
		s.fleet.Push(fmt.Sprint(i))
	}
	s.do(s.m.Ready(t.Context(), s.fleet.Head()))
	_, err := s.m.ConfigMap(t.Context(), "shop", "cm", "value", "49")
	s.do(err)
}

// P3: an error is never taken for an empty answer, at any of the places that a
// pass reads from; and each clears up by itself.
func TestP3_ErrorsAreNotEmptyAnswers(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns("{name: base, path: addons/base}")
	s.fleet.Write("addons/base/ns.yaml", namespace("shop"))
	for i := range 4 {
		s.fleet.Write(fmt.Sprintf("addons/base/cm-%d.yaml", i), configMap(fmt.Sprint("cm-", i), "one"))
	}
	s.join(func(o *world.MemberOptions) { o.Proxied = true })
	first := s.fleet.Push("first")
	s.do(s.m.Ready(t.Context(), first))
	before := s.versions()

	for status, reason := range map[int]string{http.StatusUnauthorized: "AuthenticationFailed", http.StatusForbidden: "AuthenticationFailed", http.StatusInternalServerError: "Unreachable"} {
		s.fleet.Server.SetStatus(status)
		s.do(s.m.Condition(t.Context(), v1alpha1.SourceReady, reason))
		s.fleet.Server.SetStatus(0)
		s.do(s.m.Condition(t.Context(), v1alpha1.SourceReady, "Fetched"))
	}

	// An agent that starts while the API server answers some reads with errors.
	for _, path := range []string{"/configmaps/fleetling-pin", "/configmaps", "/secrets"} {
		broken := s.m.Proxy.On(cluster.Rule{Match: cluster.Requests(http.MethodGet, path), Refuse: http.StatusInternalServerError})
		s.do(s.m.Agent.Restart(true))
		s.do(s.m.Eventually(t.Context(), func(context.Context) error {
			if broken.Count() < 2 {
				return fmt.Errorf("it was asked %d times", broken.Count())
			}
			return nil
		}))
		assert.Equal(t, before, s.versions(), path)
		broken.Off()
		s.do(s.m.Reconcile(t.Context()))
		assert.Equal(t, before, s.versions(), path)
	}
	// The first pass after a restart may still look at what is there.
	s.do(s.m.Ready(t.Context(), first))
	assert.Equal(t, before, s.versions())
}

// The API server is away for a while: nothing is lost, and what was changed
// meanwhile is repaired.
func TestAnAPIServerThatWasAwayIsCaughtUpWith(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns("{name: base, path: addons/base}")
	s.fleet.Write("addons/base/ns.yaml", namespace("shop"))
	s.fleet.Write("addons/base/cm.yaml", configMap("cm", "one"))
	s.join()
	s.do(s.m.Ready(t.Context(), s.fleet.Push("first")))
	s.m.Pause()
	s.fleet.Write("addons/base/cm.yaml", configMap("cm", "two"))
	second := s.fleet.Push("while it is away")
	s.do(s.m.Resume(t.Context()))
	s.do(s.m.Ready(t.Context(), second))
	_, err := s.m.ConfigMap(t.Context(), "shop", "cm", "value", "two")
	s.do(err)
}
