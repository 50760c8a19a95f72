package agent

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetling/fleetling/agent/clusterset"
	"github.com/fleetling/fleetling/discovery/peer"
)

func TestAPeersConditionsSayWhatIsBelievedOfIt(t *testing.T) {
	outside := peer.Problem{Reason: peer.OutsideRanges, Message: "10.9.9.9 is outside"}
	for name, c := range map[string]struct {
		view                      peer.View
		trusted, fresh, contained string
	}{
		"not read yet":   {peer.View{State: peer.Unknown}, "Unknown/Progressing", "Unknown/Progressing", "True/Contained"},
		"fresh":          {peer.View{State: peer.Fresh}, "True/Verified", "True/Fresh", "True/Contained"},
		"late":           {peer.View{State: peer.Late}, "True/Verified", "False/Late", "True/Contained"},
		"not ready":      {peer.View{State: peer.Late, Late: true}, "True/Verified", "False/EndpointsNotReady", "True/Contained"},
		"left":           {peer.View{State: peer.Withdrawn}, "True/Verified", "False/Withdrawn", "True/Contained"},
		"forged":         {peer.View{State: peer.Fresh, Problem: peer.Problem{Reason: peer.BadSignature, Message: "no"}}, "False/BadSignature", "True/Fresh", "True/Contained"},
		"overlaps":       {peer.View{State: peer.Fresh, Overlap: peer.Problem{Reason: peer.OverlappingRanges, Message: "with b"}}, "True/OverlappingRanges", "True/Fresh", "True/Contained"},
		"out of bounds":  {peer.View{State: peer.Fresh, RefusedEndpoints: 1, Refused: []peer.Problem{outside}}, "True/Verified", "True/Fresh", "False/OutsideRanges"},
		"never believed": {peer.View{State: peer.Unknown, Problem: peer.Problem{Reason: peer.NoKeys, Message: "no key"}}, "False/NoKeys", "Unknown/Progressing", "True/Contained"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, condition := range peerStatus(c.view).Conditions {
				got = append(got, string(condition.Status)+"/"+condition.Reason)
				assert.NotEmpty(t, condition.Message)
			}
			assert.Equal(t, []string{c.trusted, c.fresh, c.contained}, got)
		})
	}
}

func TestConnectedStandsOnlyWhereThereIsARegistry(t *testing.T) {
	assert.Empty(t, outcome{}.connected())
	for _, c := range []struct {
		connected bool
		reason    string
		want      metav1.ConditionStatus
	}{
		{true, clusterset.ReasonConnected, metav1.ConditionTrue},
		{true, clusterset.ReasonNotPublished, metav1.ConditionFalse},
		{false, clusterset.ReasonConnecting, metav1.ConditionUnknown},
		{false, clusterset.ReasonUnreachable, metav1.ConditionFalse},
		{false, clusterset.ReasonNoMemberKey, metav1.ConditionFalse},
	} {
		got := outcome{connection: &connection{connected: c.connected, reason: c.reason, message: "words"}}.connected()
		assert.Equal(t, c.want, got[0].Status, c.reason)
	}
}

func TestTheBoardTellsWhetherAConnectionIsNews(t *testing.T) {
	b := &board{}
	assert.Nil(t, b.connected())
	assert.True(t, b.connect(connection{connected: true, reason: "Connected"}))
	assert.False(t, b.connect(connection{connected: true, reason: "Connected"}))
	assert.True(t, b.connect(connection{reason: "Unreachable"}))
	assert.Equal(t, "Unreachable", b.connected().reason)
}
