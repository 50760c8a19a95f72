package apply

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// manyIDs is a set of n identities with long names.
func manyIDs(n int) Set {
	set := Set{}
	for i := range n {
		set[ID{Group: "apps", Kind: "Deployment", Namespace: "web", Name: fmt.Sprintf("%s-%05d", strings.Repeat("x", 200), i)}] = Holding(i%3 > 0)
	}
	return set
}

func decodeAll(t *testing.T, chunks []string) Set {
	t.Helper()
	set := Set{}
	for _, chunk := range chunks {
		require.NoError(t, set.decodeChunk(chunk))
	}
	return set
}

func TestASetIsReadAsItWasWritten(t *testing.T) {
	for name, set := range map[string]Set{
		"nothing":                            {},
		"one":                                {{Kind: "Namespace", Name: "web"}: Held},
		"an intent":                          {{Kind: "Namespace", Name: "web"}: Intended},
		"six thousand with long names (B16)": manyIDs(6000),
	} {
		t.Run(name, func(t *testing.T) {
			chunks := set.encode()
			assert.Equal(t, set, decodeAll(t, chunks))
			for _, chunk := range chunks {
				assert.LessOrEqual(t, len(chunk), chunkBytes)
				assert.NotEmpty(t, chunk)
			}
			assert.Equal(t, chunks, set.encode(), "the same set, the same bytes")
		})
	}
	assert.Len(t, manyIDs(6000).encode(), 6)
}

func TestAChunkIsFullBeforeTheNextBegins(t *testing.T) {
	// Lines of 128 bytes: 2048 of them are a chunk to the byte.
	set := Set{}
	for i := range 2048 {
		set[ID{Kind: "ConfigMap", Namespace: "web", Name: strings.Repeat("x", 107) + fmt.Sprintf("%05d", i)}] = Held
	}
	chunks := set.encode()
	require.Len(t, chunks, 1)
	assert.Len(t, chunks[0], chunkBytes)
	set[ID{Kind: "ConfigMap", Namespace: "web", Name: "y"}] = Held
	assert.Len(t, set.encode(), 2)
}

func TestHalfAnInventoryIsNotTakenForAWholeOne(t *testing.T) {
	for name, text := range map[string]string{
		"a line that is no key":   "/ConfigMap/web/a\nConfigMap web b\n",
		"an empty line":           "/ConfigMap/web/a\n\n/ConfigMap/web/b\n",
		"a line that was cut off": "/ConfigMap/web/a\n/ConfigMap/we",
		"line ends of Windows":    "/ConfigMap/web/a\r\n",
		"a mark without a key":    "?\n",
		"two marks":               "??/ConfigMap/web/a\nx",
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, Set{}.decodeChunk(text), "inventory: ")
		})
	}
}

func TestAnIdentityThatIsWrittenTwiceIsHeldIfOneSaysSo(t *testing.T) {
	for _, texts := range [][]string{{"?/ConfigMap/web/a\n", "/ConfigMap/web/a\n"}, {"/ConfigMap/web/a\n", "?/ConfigMap/web/a\n"}} {
		assert.Equal(t, Set{{Kind: "ConfigMap", Namespace: "web", Name: "a"}: Held}, decodeAll(t, texts))
	}
}

func TestACopyOfAnInventorySharesNothing(t *testing.T) {
	id := ID{Kind: "Namespace", Name: "web"}
	first := Inventory{"shop": {id: Held}}
	second := first.Clone()
	delete(second["shop"], id)
	assert.True(t, first.Holds(id))
	assert.False(t, second.Holds(id))
	assert.False(t, Inventory{"shop": {id: Intended}}.Holds(id))
}

// TestNoIdentityIsEverInNoChunk replays the writes of a set that grew or shrank,
// in the order of the store, and looks after each one.
func TestNoIdentityIsEverInNoChunk(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		small, large := Set{}, Set{}
		for id := range manyIDs(4000) {
			large[id] = Intended
			if random.IntN(3) > 0 {
				small[id] = Held
				large[id] = Held
			}
		}
		from, to := small.encode(), large.encode()
		require.Greater(t, len(to), len(from))
		stored := append(append([]string{}, from...), make([]string, len(to)-len(from))...)
		for i := len(to) - 1; i >= 0; i-- {
			stored[i] = to[i]
			requireAll(t, small, stored)
		}
		for i := range stored {
			stored[i] = ""
			if i < len(from) {
				stored[i] = from[i]
			}
			requireAll(t, small, stored)
		}
	}
}

func requireAll(t *testing.T, want Set, chunks []string) {
	t.Helper()
	got := decodeAll(t, chunks)
	for id := range want {
		require.Equal(t, Held, got[id], "%s", id)
	}
}

func FuzzDecodeChunk(f *testing.F) {
	for _, text := range []string{"", "/ConfigMap/web/a\n", "?/ConfigMap/web/a\n/ConfigMap/web/b\n", "/ConfigMap/web/a", "\n", "?", "a/b/c/d\n?a/b/c/d\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set := Set{}
		if set.decodeChunk(text) != nil {
			return
		}
		again := Set{}
		for _, chunk := range set.encode() {
			require.NoError(t, again.decodeChunk(chunk))
		}
		require.Equal(t, set, again)
	})
}
