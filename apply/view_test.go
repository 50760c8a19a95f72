package apply

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	viewKind = schema.GroupKind{Kind: "ConfigMap"}
	viewID   = ID{Kind: "ConfigMap", Namespace: "web", Name: "a"}
)

// seenAt is the ConfigMap web/a as a watch delivers it.
func seenAt(version uint64, uid string) *unstructured.Unstructured {
	u := configMap("web", "a")
	u.SetUID(types.UID(uid))
	u.SetResourceVersion(strconv.FormatUint(version, 10))
	return u
}

// viewOf is a view of ConfigMaps, and how often it called.
func viewOf() (*view, *kindView, *int) {
	calls := new(int)
	v := newView(func() { *calls++ })
	return v, v.add(viewKind), calls
}

func TestAnAnswerStandsUntilTheWatchHasCaughtUp(t *testing.T) {
	cases := map[string]struct {
		script string
		want   uint64 // the version in sight, and 0 where none is
	}{
		"an older event comes late":                              {"answer 7, event 5", 7},
		"an older deletion comes late":                           {"answer 7, deleted 6", 7},
		"the event of the answer":                                {"answer 7, event 7", 7},
		"a newer event":                                          {"answer 7, event 8", 8},
		"a newer deletion":                                       {"answer 7, deleted 8", 0},
		"an older answer":                                        {"event 8, answer 7", 8},
		"an older answer about an incarnation that is gone":      {"event 8 new, answer 7 old", 8},
		"a newer answer":                                         {"event 8, answer 9", 9},
		"a list from before the answer":                          {"answer 7, list 6", 7},
		"a list with an older state than the answer":             {"answer 7, list 6 5", 7},
		"a list that still is not as new, and one that is":       {"answer 7, list 6, list 8", 0},
		"a list with a newer state":                              {"answer 7, list 9 9", 9},
		"a watch whose versions went back, as etcd was restored": {"list 900 900, list 21 20", 20},
		"a list without it after etcd was restored":              {"list 900 900, list 21", 0},
		"an event after etcd was restored":                       {"event 900, event 20", 20},
		"the watch confirms the answer, then goes back":          {"answer 900, event 900, list 21 20", 20},
		"a read found it gone, and it comes back":                {"answer 7, forget, event 5", 5},
		"nobody watches its kind":                                {"drop, answer 7, ending, forget", 0},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			v, k, _ := viewOf()
			for step := range strings.SplitSeq(test.script, ", ") {
				play(t, v, k, strings.Fields(step))
			}
			assert.Equal(t, test.want, v.get(viewID).Version)
			all, _ := v.snapshot()
			assert.Equal(t, test.want != 0, all[viewID] != nil)
			assert.Len(t, v.of(viewKind), len(all))
		})
	}
}

// play does what a word says, with the version and the UID after it.
func play(t *testing.T, v *view, k *kindView, words []string) {
	t.Helper()
	version, uid := uint64(0), "u"
	if len(words) > 1 {
		version = parseVersion(words[1])
	}
	if len(words) > 2 {
		uid = words[2]
	}
	switch words[0] {
	case "answer":
		v.observe(viewID, Live{UID: types.UID(uid), Version: version})
	case "event":
		require.NoError(t, k.Update(seenAt(version, uid)))
	case "deleted":
		require.NoError(t, k.Delete(seenAt(version, uid)))
	case "list":
		var objects []any
		if len(words) > 2 {
			objects = append(objects, seenAt(parseVersion(words[2]), "u"))
		}
		require.NoError(t, k.Replace(objects, words[1]))
	case "forget":
		v.forget(viewID)
	case "ending":
		v.ending(viewID, "u")
	case "drop":
		v.drop(viewKind)
	default:
		require.Fail(t, "unknown word", words)
	}
}

func TestAKindIsKnownWholeOnceItIsListed(t *testing.T) {
	v, k, _ := viewOf()
	require.NoError(t, k.Add(seenAt(1, "u")))
	_, synced := v.snapshot()
	assert.False(t, synced[viewKind])
	require.NoError(t, k.Replace(nil, "2"))
	_, synced = v.snapshot()
	assert.True(t, synced[viewKind])
	v.drop(viewKind)
	all, synced := v.snapshot()
	assert.Empty(t, all)
	assert.False(t, synced[viewKind], "a kind that is not watched is not known")
	require.NoError(t, k.Update(seenAt(9, "u")))
	all, _ = v.snapshot()
	assert.Empty(t, all, "what a dropped watch still delivers goes nowhere")
	assert.Nil(t, v.of(viewKind))
}

func TestOnlyNewsCalls(t *testing.T) {
	_, k, calls := viewOf()
	expect := func(want int, what string) {
		t.Helper()
		assert.Equal(t, want, *calls, what)
		*calls = 0
	}
	require.NoError(t, k.Add(seenAt(1, "u")))
	expect(1, "a new object")
	require.NoError(t, k.Update(seenAt(2, "u")))
	expect(0, "another version of the same")
	require.NoError(t, k.Update(seenAt(3, "v")))
	expect(1, "another incarnation")
	require.NoError(t, k.Update(deployment()))
	expect(1, "an object of another name")
	finalizers := seenAt(4, "v")
	finalizers.SetFinalizers([]string{"example.com/x"})
	require.NoError(t, k.Update(finalizers))
	expect(1, "finalizers")
	require.NoError(t, k.Delete(seenAt(5, "v")))
	expect(1, "a deletion")
	require.NoError(t, k.Delete(seenAt(5, "v")))
	expect(0, "the same deletion")
	require.NoError(t, k.Replace(nil, "6"))
	expect(1, "a list")
	require.NoError(t, k.Resync())
	require.NoError(t, k.Update("no object"))
	require.NoError(t, k.Delete("no object"))
	expect(0, "nothing")
}

func TestASnapshotStaysAsItWas(t *testing.T) {
	v, k, _ := viewOf()
	require.NoError(t, k.Add(seenAt(1, "u")))
	all, _ := v.snapshot()
	v.ending(viewID, "u")
	require.NoError(t, k.Update(seenAt(2, "v")))
	assert.Equal(t, uint64(1), all[viewID].Version)
	assert.False(t, all[viewID].Deleting)
}

func TestADeleteThatWasTakenIsNotSentAgain(t *testing.T) {
	v, k, _ := viewOf()
	require.NoError(t, k.Add(seenAt(1, "u")))
	v.ending(viewID, "another")
	assert.False(t, v.get(viewID).Deleting, "of another incarnation")
	v.ending(viewID, "u")
	assert.True(t, v.get(viewID).Deleting)
	require.NoError(t, k.Update(seenAt(2, "u")))
	assert.True(t, v.get(viewID).Deleting, "the watch tells of what was before the delete")
	require.NoError(t, k.Replace([]any{seenAt(2, "u")}, "2"))
	assert.True(t, v.get(viewID).Deleting, "and a list too")
	require.NoError(t, k.Update(seenAt(3, "v")))
	assert.False(t, v.get(viewID).Deleting, "the watch knows better")
}
