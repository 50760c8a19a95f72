package world_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/e2e/world"
)

func TestFleetIsLoadedAndChanged(t *testing.T) {
	fleet := world.NewFleet(t)
	fleet.Load(t, fstest.MapFS{"a/b.yaml": {Data: []byte("one: 1\ntwo: 1\n")}})
	fleet.Replace(t, "a/b.yaml", "one: 1", "one: 2")
	content, err := os.ReadFile(filepath.Join(fleet.Dir, "a", "b.yaml"))
	require.NoError(t, err)
	assert.Equal(t, "one: 2\ntwo: 1\n", string(content))
	assert.PanicsWithValue(t, `a/b.yaml: "three" stands there 0 times, not once`, func() { fleet.Replace(failing{t}, "a/b.yaml", "three", "") })
	assert.PanicsWithValue(t, `a/b.yaml: ": " stands there 2 times, not once`, func() { fleet.Replace(failing{t}, "a/b.yaml", ": ", "") })
}

func TestExampleIsThere(t *testing.T) {
	assert.NoError(t, fstest.TestFS(world.Example(t), "fleetling.yaml", "clusters/prod-ap-south.yaml", "clusters/prod-eu-west.yaml"))
}

// failing panics where a test would end.
type failing struct{ *testing.T }

func (failing) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
