package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// showNodes prints what `kubectl get nodes` would.
func (d *demo) showNodes(ctx context.Context) error {
	rows := [][]string{{"CLUSTER", "NODE", "STATUS", "VERSION", "INTERNAL-IP"}}
	for _, m := range d.members {
		client, err := kubernetes.NewForConfig(m.Config())
		if err != nil {
			return err
		}
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("nodes of %s: %w", m.Name(), err)
		}
		for _, n := range nodes.Items {
			rows = append(rows, append([]string{m.Name()}, nodeRow(&n)...))
		}
	}
	d.printf("%s", table(rows))
	return nil
}

func nodeRow(n *corev1.Node) []string {
	status, address := "NotReady", ""
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			address = a.Address
		}
	}
	return []string{n.Name, status, n.Status.NodeInfo.KubeletVersion, address}
}

// table lines up columns, the first row is the head.
func table(rows [][]string) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	// A strings.Builder takes everything.
	_ = w.Flush()
	return text.String()
}
