package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPrintedTableIsWhatKubectlShows(t *testing.T) {
	given := metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Message", Priority: 1}, {Name: "Failed"}, {Name: "Path"}},
		Rows: []metav1.TableRow{
			{Cells: []any{"platform", "long", float64(0), "addons/x"}},
			{Cells: []any{"policies", "long", float64(2), nil}},
		},
	}
	want := [][]string{
		{"ON", "NAME", "FAILED", "PATH"},
		{"one", "platform", "0", "addons/x"},
		{"one", "policies", "2", ""},
	}
	assert.Equal(t, want, printed("one", given))
}
