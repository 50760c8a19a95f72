package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

func TestTableLinesUp(t *testing.T) {
	assert.Equal(t, "NAME    STATUS\na       Ready\nlonger  NotReady\n", table([][]string{{"NAME", "STATUS"}, {"a", "Ready"}, {"longer", "NotReady"}}))
}

func TestNodeIsReadyWhereItsConditionSaysSo(t *testing.T) {
	n := &corev1.Node{}
	n.Name = "one"
	n.Status.NodeInfo.KubeletVersion = "v1"
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "one"}, {Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	assert.Equal(t, []string{"one", "NotReady", "v1", "10.0.0.1"}, nodeRow(n))
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	assert.Equal(t, "NotReady", nodeRow(n)[1])
	n.Status.Conditions[0].Status = corev1.ConditionTrue
	assert.Equal(t, "Ready", nodeRow(n)[1])
}
