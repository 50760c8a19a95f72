package capi

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
)

func TestDocumentsKnowTheirLines(t *testing.T) {
	objects, err := Read("f.yaml", []byte("# head\n\nkind: A\napiVersion: v1\n---\n# nothing\n--- # c\nkind: B\napiVersion: v1\nmetadata: {name: m, namespace: s}\ndata:\n  x: |\n    ---\n    kind: C\n--- {kind: D, apiVersion: v1, count: 3}\n"))
	require.NoError(t, err)
	var got []string
	lines := []int{}
	for _, o := range objects {
		got, lines = append(got, o.String()), append(lines, o.Line)
	}
	assert.Equal(t, []string{"A/", "B/s/m", "D/"}, got)
	assert.Equal(t, []int{3, 8, 15}, lines)
	assert.Equal(t, int64(3), objects[2].Object["count"])
}

func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no kind":         {"apiVersion: v1\npassword: hunter2\n", "f.yaml:1: not an object: kind is missing"},
		"no version":      {"---\nkind: Secret\n", "f.yaml:2: not an object: apiVersion is missing"},
		"a scalar":        {"hunter2\n", "not an object"},
		"a key twice":     {"kind: A\nkind: B\n", "f.yaml:1: "},
		"broken YAML":     {"kind: [\n", "f.yaml:1: "},
		"a List":          {"kind: List\napiVersion: v1\nitems: [{kind: A, apiVersion: v1}]\n", "write its items as documents"},
		"an alias bomb":   {"kind: A\napiVersion: v1\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", "excessive aliasing"},
		"more than fits":  {strings.Repeat("#", MaxFileBytes+1), "more than"},
		"not even a text": {"\x00\x01", "f.yaml:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read("f.yaml", []byte(c.text))
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "hunter2")
			assert.NotEmpty(t, sources.ReasonOf(err))
		})
	}
}
