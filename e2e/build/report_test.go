package build

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReportCountsWhatTheGoToolSays(t *testing.T) {
	var out strings.Builder
	r := &report{out: &out, start: time.Now()}
	say := func(text string) {
		t.Helper()
		n, err := r.Write([]byte(text))
		require.NoError(t, err)
		assert.Equal(t, len(text), n)
	}
	say("go: downloading k8s.io/api v0.37.2\ngo: down")
	say("loading k8s.io/client-go v0.37.2\n")
	r.line()
	r.expect(3)
	say("internal/goarch\nmath/rand/v2\nk8s.io/api/core/v1\n# k8s.io/api/core/v1\ncore/v1/types.go:1:2: syntax error\npart")
	r.line()

	lines := strings.Split(out.String(), "\n")
	assert.Contains(t, lines[0], "2 modules downloaded")
	assert.Contains(t, lines[1], "compiled 0 of at most 3 packages")
	assert.Contains(t, lines[2], "compiled 3 of at most 3 packages")
	assert.Equal(t, "# k8s.io/api/core/v1\ncore/v1/types.go:1:2: syntax error\npart", r.rest())
}

func TestReportKeepsTheLastLinesForAnError(t *testing.T) {
	r := &report{out: &strings.Builder{}}
	_, err := r.Write([]byte(strings.Repeat("an error: old\n", 3*maxRest) + "an error: last\n"))
	require.NoError(t, err)
	assert.Equal(t, maxRest, strings.Count(r.rest(), "\n"))
	assert.Contains(t, r.rest(), "an error: last")
}

func TestReportGoesOnUntilItIsStopped(t *testing.T) {
	lines := make(chan string)
	r := &report{out: lineWriter(lines), start: time.Now()}
	stop := r.every(time.Millisecond)
	assert.Contains(t, <-lines, "reading sources")
	assert.Contains(t, <-lines, "reading sources")
	go func() {
		for range lines {
		}
	}()
	stop()
	close(lines)
}

type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}
