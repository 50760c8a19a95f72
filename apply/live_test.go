package apply

import (
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const ourFields = `{"f:data":{"f:a":{},"f:b":{}},"f:metadata":{"f:labels":{"f:x":{}}}}`

func ours(fields string) metav1.ManagedFieldsEntry {
	return fieldsEntry(Manager, metav1.ManagedFieldsOperationApply, "", fields)
}

func TestTheHashIsOfWhatWeOwnAndOfNothingElse(t *testing.T) {
	other := fieldsEntry("someone", metav1.ManagedFieldsOperationUpdate, "", `{"f:data":{"f:c":{}}}`)
	later := ours(ourFields)
	later.Time = new(metav1.NewTime(time.Unix(99, 0)))
	newVersion := ours(ourFields)
	newVersion.APIVersion = "v2"
	noFields := ours(ourFields)
	noFields.FieldsV1 = nil
	base := fieldsHash([]metav1.ManagedFieldsEntry{ours(ourFields)})
	require.Len(t, base, 32)
	for name, entries := range map[string][]metav1.ManagedFieldsEntry{
		"another order of the JSON": {ours(`{"f:metadata":{"f:labels":{"f:x":{}}}, "f:data":{"f:b":{},"f:a":{}}}`)},
		"another time":              {later},
		"other managers":            {other, ours(ourFields), fieldsEntry(Manager, metav1.ManagedFieldsOperationUpdate, "", `{"f:data":{"f:z":{}}}`)},
		"our own status":            {fieldsEntry(Manager, metav1.ManagedFieldsOperationApply, "status", `{"f:status":{}}`), ours(ourFields)},
	} {
		assert.Equal(t, base, fieldsHash(entries), name)
		assert.Equal(t, base, watchedFields(withEntries(entries)), name)
	}
	for name, entries := range map[string][]metav1.ManagedFieldsEntry{
		"a field less":    {ours(`{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:x":{}}}}`)},
		"another version": {newVersion},
		"no JSON":         {ours("{")},
	} {
		got := fieldsHash(entries)
		assert.NotEqual(t, base, got, name)
		assert.NotEmpty(t, got, name)
	}
	for name, entries := range map[string][]metav1.ManagedFieldsEntry{
		"none":             nil,
		"only of others":   {other},
		"only an update":   {fieldsEntry(Manager, metav1.ManagedFieldsOperationUpdate, "", ourFields)},
		"only of a status": {fieldsEntry(Manager, metav1.ManagedFieldsOperationApply, "status", ourFields)},
		"a namesake":       {fieldsEntry(Manager+"-2", metav1.ManagedFieldsOperationApply, "", ourFields)},
		"without fields":   {noFields},
	} {
		assert.Empty(t, fieldsHash(entries), name)
		assert.Empty(t, watchedFields(withEntries(entries)), name)
	}
}

func withEntries(entries []metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	u := configMap("web", "a")
	u.SetManagedFields(entries)
	return u
}

func TestAWatchAndAnAnswerTellTheSame(t *testing.T) {
	u := deployment()
	raw, err := u.MarshalJSON()
	require.NoError(t, err)
	var answer metav1.PartialObjectMetadata
	require.NoError(t, yaml.Unmarshal(raw, &answer))
	fromAnswer, fromWatch := liveOfAnswer(&answer), liveOf(u)
	assert.Equal(t, status.InProgressStatus, fromAnswer.Health, "an answer tells nothing of health")
	assert.Equal(t, status.CurrentStatus, fromWatch.Health)
	fromAnswer.Health, fromAnswer.Message = fromWatch.Health, fromWatch.Message
	assert.True(t, fromAnswer.Created.Equal(fromWatch.Created))
	fromAnswer.Created = fromWatch.Created
	assert.Equal(t, fromWatch, fromAnswer)
	assert.True(t, fromWatch.Owned())
}

func TestAnEntryOfOursThatIsNoMapIsOursAllTheSame(t *testing.T) {
	u := withEntries([]metav1.ManagedFieldsEntry{ours(ourFields)})
	u.Object["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)["fieldsV1"] = "x"
	assert.Equal(t, unreadable, watchedFields(u))
}

func TestHealthIsThatOfKstatusWithAGraceForCustomResources(t *testing.T) {
	created := "2026-01-01T00:00:00Z"
	now := time.Date(2026, 1, 1, 0, 0, 10, 0, time.UTC)
	widget := "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, creationTimestamp: '" + created + "', generation: 2}\n"
	cases := map[string]struct {
		yaml string
		want status.Status
		wait time.Duration
	}{
		"a ConfigMap":                          {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", status.CurrentStatus, 0},
		"a Deployment that nobody has seen":    {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n", status.InProgressStatus, 0},
		"a definition that is not established": {"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n", status.InProgressStatus, 0},
		"a custom resource without a status":   {widget, status.InProgressStatus, 20 * time.Second},
		"one with an empty status":             {widget + "status: {}\n", status.InProgressStatus, 20 * time.Second},
		"one with null for a status":           {widget + "status: null\n", status.InProgressStatus, 20 * time.Second},
		"one with a status without conditions": {widget + "status: {phase: x}\n", status.CurrentStatus, 0},
		"one that is behind its generation":    {widget + "status: {observedGeneration: 1, conditions: [{type: Ready, status: 'True'}]}\n", status.InProgressStatus, 0},
		"one that is ready":                    {widget + "status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True'}]}\n", status.CurrentStatus, 0},
		"one that is not ready":                {widget + "status: {observedGeneration: 2, conditions: [{type: Ready, status: 'False'}]}\n", status.InProgressStatus, 0},
		"one that is stalled":                  {widget + "status: {observedGeneration: 2, conditions: [{type: Stalled, status: 'True'}]}\n", status.FailedStatus, 0},
		"an APIService that nobody serves":     {"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}, status: {conditions: [{type: Available, status: 'False', message: nobody}]}}", status.InProgressStatus, 0},
		"an APIService that is served":         {"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}, status: {conditions: [{type: Available, status: 'True'}]}}", status.CurrentStatus, 0},
		"another thing that is not available":  {widget + "status: {observedGeneration: 2, conditions: [{type: Available, status: 'False'}]}\n", status.CurrentStatus, 0},
		"one that is on its way out":           {"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, deletionTimestamp: '" + created + "'}\n", status.TerminatingStatus, 0},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got, _, wait := liveOf(readYAML(t, test.yaml)).health(now)
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.wait, wait)
		})
	}
	got, message, wait := liveOf(readYAML(t, widget)).health(now.Add(20 * time.Second))
	assert.Equal(t, status.CurrentStatus, got, "after the grace")
	assert.Equal(t, NoStatus, message)
	assert.Zero(t, wait)
}

func TestWhatCanNotBeJudgedIsUnknownAndSaysWhy(t *testing.T) {
	u := configMap("web", "a")
	u.Object["status"] = map[string]any{"conditions": "none"}
	live := liveOf(u)
	assert.Equal(t, status.UnknownStatus, live.Health)
	assert.NotEmpty(t, live.Message)
}

func TestAVersionIsADecimalNumberOrTheOldest(t *testing.T) {
	for text, want := range map[string]uint64{"": 0, "17": 17, "18446744073709551615": 1<<64 - 1, "18446744073709551616": 0, "x": 0, "-1": 0, "0x10": 0} {
		assert.Equal(t, want, parseVersion(text), text)
	}
}
