package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/kyaml/kio"
)

// TestStreamsAreCutWhereKustomizeCutsThem compares with kustomize's reader,
// which drops what holds nothing.
func TestStreamsAreCutWhereKustomizeCutsThem(t *testing.T) {
	cases := map[string]string{
		"one document":                  "a: 1\n",
		"no line break at the end":      "a: 1",
		"two documents":                 "a: 1\n---\nb: 2\n",
		"a separator first":             "---\na: 1\n---\nb: 2\n",
		"two separators first":          "---\n---\na: 1\n",
		"three separators":              "a: 1\n---\n---\n---\nb: 2\n",
		"comments on separators":        "a: 1\n--- # one\nb: 2\n---\t#two\nc: 3\n",
		"a separator last":              "a: 1\n---\n",
		"a separator without line end":  "a: 1\n---",
		"dashes in a block":             "a: |\n  ---\n  x\n---\nb: ----\n",
		"CRLF":                          "a: 1\r\n---\r\nb: |\r\n  x\r\n  y\r\n",
		"a byte order mark":             "\ufeffa: 1\n---\nb: 2\n",
		"comments and nulls":            "# x\n---\nnull\n---\n~\n---\n{}\n---\na: 1\n---\n# y\n",
		"a document end":                "a: 1\n...\n---\nb: 2\n",
		"nothing":                       "",
		"only a comment":                "# nothing\n",
		"separators and nothing else":   "---\n---\n---\n",
		"JSON":                          "{\"a\": 1}\n",
		"empty lines around separators": "\n\na: 1\n\n---\n\nb: 2\n\n",
	}
	for name, stream := range cases {
		t.Run(name, func(t *testing.T) {
			nodes, err := kio.FromBytes([]byte(stream))
			require.NoError(t, err)
			var want, got []any
			for _, node := range nodes {
				if !node.IsNilOrEmpty() {
					v, err := value(node.YNode())
					require.NoError(t, err)
					want = append(want, v)
				}
			}
			p := &problems{}
			docs, good := p.documents("a.yaml", []byte(stream))
			require.True(t, good, p.err())
			for _, doc := range docs {
				v, err := value(doc.node)
				require.NoError(t, err)
				got = append(got, v)
			}
			assert.Empty(t, cmp.Diff(want, got), "-kustomize +ours")
		})
	}
}

func TestLinesAreCountedFromTheFile(t *testing.T) {
	p := &problems{}
	_, good := p.documents("a.yaml", []byte("# one\na: 1\n---\n\nb: 2\nc: {d: 1,\n  d: 2}\n---\ne: [\n"))
	require.False(t, good)
	require.Len(t, p.list, 2)
	assert.Equal(t, 7, p.list[0].Line)
	assert.Contains(t, p.list[0].Error(), "first on line 6")
	assert.GreaterOrEqual(t, p.list[1].Line, 9)
}

func TestAliasesWithinTheBudgetAreExpanded(t *testing.T) {
	base := "a: &a [" + strings.Repeat("x,", 98) + "x]\n"
	for uses, good := range map[int]bool{1: true, 99: true, 100: true, 101: false} {
		var text strings.Builder
		text.WriteString(base + "b:\n")
		for range uses {
			text.WriteString("- *a\n")
		}
		p := &problems{}
		_, ok := p.documents("a.yaml", []byte(text.String()))
		assert.Equal(t, good, ok, "%d aliases of 100 nodes: %v", uses, p.err())
	}
}

func TestADocumentMayNestAHundredLevels(t *testing.T) {
	for depth, good := range map[int]bool{98: true, 99: true, 100: false, 5000: false, 20_000: false} {
		p := &problems{}
		_, ok := p.documents("a.yaml", []byte("a: "+strings.Repeat("[", depth-1)+"x"+strings.Repeat("]", depth-1)+"\n"))
		assert.Equal(t, good, ok, "%d lists in a mapping: %v", depth, p.err())
	}
}
