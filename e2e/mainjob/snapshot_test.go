package mainjob_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
)

// A new Pod on a new node, while Git is away: drift is repaired from the
// snapshot, and nothing is pruned.
func TestANewPodRepairsDriftWhileGitIsAway(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns("{name: base, path: addons/base}")
	s.fleet.Write("addons/base/namespace.yaml", namespace("shop"))
	for i := range 4 {
		s.fleet.Write(fmt.Sprintf("addons/base/cm-%d.yaml", i), configMap(fmt.Sprint("cm-", i), "one"))
	}
	first := s.fleet.Push("first")
	s.join()
	s.do(s.m.Ready(t.Context(), first))

	s.fleet.Server.SetDown(true)
	s.m.Agent.Kill9()
	edited := shop("cm-1")
	s.do(s.m.Client.Get(t.Context(), client.ObjectKeyFromObject(edited), edited))
	edited.Data["value"] = "by hand"
	s.do(s.m.Client.Update(t.Context(), edited, client.FieldOwner("somebody")))
	s.do(s.m.Client.Delete(t.Context(), shop("cm-2")))
	before := s.versions()

	s.do(s.m.Agent.Restart(true))
	for _, name := range []string{"cm-1", "cm-2"} {
		_, err := s.m.ConfigMap(t.Context(), "shop", name, "value", "one")
		s.do(err)
	}
	s.do(s.m.Condition(t.Context(), v1alpha1.SourceReady, "Unreachable"))
	s.do(s.m.Client.Delete(t.Context(), shop("cm-3")))
	_, err := s.m.ConfigMap(t.Context(), "shop", "cm-3", "value", "one")
	s.do(err)
	after := s.versions()
	assert.Len(t, after, 4)
	assert.Equal(t, before["cm-0"], after["cm-0"], "what nobody touched is as it was")

	s.fleet.Server.SetDown(false)
	s.fleet.Write("addons/base/cm-0.yaml", configMap("cm-0", "two"))
	s.do(s.m.Ready(t.Context(), s.fleet.Push("Git is back")))
	_, err = s.m.ConfigMap(t.Context(), "shop", "cm-0", "value", "two")
	s.do(err)
}
