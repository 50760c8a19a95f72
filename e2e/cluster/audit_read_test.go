package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAuditLogIsReadUpToItsLastWholeLine(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		verbs   []string
		err     string
	}{
		"empty":                       {"", nil, ""},
		"whole lines":                 {`{"verb":"get"}` + "\n" + `{"verb":"list"}` + "\n", []string{"get", "list"}, ""},
		"a line that is not done yet": {`{"verb":"get"}` + "\n" + `{"verb":"li`, []string{"get"}, ""},
		"one that only lacks its end": {`{"verb":"get"}` + "\n" + `{"verb":"list"}`, []string{"get"}, ""},
		"a line that is no event":     {`{"verb":"get"}` + "\n" + `"` + "\n", nil, "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			require.NoError(t, os.WriteFile(path, []byte(test.content), 0o600))
			events, err := readEvents(path)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			var verbs []string
			for _, e := range events {
				verbs = append(verbs, e.Verb)
			}
			assert.Equal(t, test.verbs, verbs)
		})
	}
}
