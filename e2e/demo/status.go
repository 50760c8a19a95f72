package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/world"
)

// showStatus waits until all is ready and prints what `kubectl get members` and
// `kubectl get addons.fleetling.dev` would.
func (d *demo) showStatus(ctx context.Context) error {
	d.printf("(waiting for the custom resource of add-on backups: its operator's container does not run, so nobody writes a status,")
	d.printf(" and after 30 s it counts as current)")
	err := d.each(ctx, func(ctx context.Context, _ int, m *world.Member) error { return m.Ready(ctx, d.head) })
	if err != nil {
		return err
	}
	for _, resource := range []string{"members", "addons"} {
		var rows [][]string
		for _, m := range d.members {
			listed, err := list(ctx, m, resource)
			if err != nil {
				return err
			}
			// One head for both.
			rows = append(rows, listed[min(len(rows), 1):]...)
		}
		d.printf("%s", table(rows))
	}
	return nil
}

// list asks the API server for the rows that kubectl prints, with the cluster's
// name before each, the head first.
func list(ctx context.Context, m *world.Member, resource string) ([][]string, error) {
	c, err := kubernetes.NewForConfig(m.Config())
	if err != nil {
		return nil, err
	}
	body, err := c.Discovery().RESTClient().Get().
		AbsPath("apis", v1alpha1.Group, v1alpha1.Version, resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("%s: list %s: %w", m.Name(), resource, err)
	}
	var t metav1.Table
	if err := json.Unmarshal(body, &t); err != nil {
		return nil, fmt.Errorf("%s: list %s: %w", m.Name(), resource, err)
	}
	return printed(m.Name(), t), nil
}

// printed keeps the columns that kubectl shows without -o wide.
func printed(name string, t metav1.Table) [][]string {
	row := func(first string, cell func(column int) any) []string {
		cells := []string{first}
		for i, column := range t.ColumnDefinitions {
			if column.Priority == 0 {
				cells = append(cells, words(cell(i)))
			}
		}
		return cells
	}
	rows := [][]string{row("ON", func(i int) any { return strings.ToUpper(t.ColumnDefinitions[i].Name) })}
	for _, r := range t.Rows {
		rows = append(rows, row(name, func(i int) any { return r.Cells[i] }))
	}
	return rows
}

// words is how kubectl prints a cell.
func words(cell any) string {
	if cell == nil {
		return ""
	}
	return fmt.Sprint(cell)
}
