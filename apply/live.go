package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// Manager is the field manager of everything that we write.
const Manager = "fleetling"

// Live is what we keep of an object in the cluster: some 200 bytes, whatever
// its size.
type Live struct {
	UID types.UID
	// Version is the resourceVersion: of one resource, the larger is the newer.
	Version uint64
	// Fields is the hash of our own managedFields entry, and "" where there is
	// none. It changes whenever another writer changes a field that we set.
	Fields string
	// AddOn is the value of AddOnLabel.
	AddOn string
	// Prune is the value of PruneAnnotation.
	Prune string
	// Health is the kstatus result.
	Health  status.Status
	Message string
	// Bare is a custom resource on which no controller has put a status.
	Bare       bool
	Created    time.Time
	Deleting   bool
	Finalizers []string
}

// Owned tells whether our field manager has a part in the object.
func (l Live) Owned() bool { return l.Fields != "" }

// liveOf reduces an object as the watch delivers it.
func liveOf(u *unstructured.Unstructured) Live {
	live := liveMeta(u, watchedFields(u))
	live.Health, live.Message = status.UnknownStatus, ""
	if result, err := status.Compute(u); err != nil {
		live.Message = err.Error()
	} else {
		live.Health, live.Message = result.Status, result.Message
	}
	if message := unavailable(u); message != "" && live.Health == status.CurrentStatus {
		live.Health, live.Message = status.InProgressStatus, message
	}
	told, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status")
	live.Bare = empty(told) && live.Health == status.CurrentStatus && !scheme.Scheme.Recognizes(u.GroupVersionKind())
	return live
}

// liveOfAnswer reduces what an answer without spec and status holds.
func liveOfAnswer(object *metav1.PartialObjectMetadata) Live {
	return liveMeta(object, fieldsHash(object.ManagedFields))
}

func liveMeta(object metav1.Object, fields string) Live {
	return Live{
		UID:        object.GetUID(),
		Version:    parseVersion(object.GetResourceVersion()),
		Fields:     fields,
		AddOn:      object.GetLabels()[AddOnLabel],
		Prune:      object.GetAnnotations()[PruneAnnotation],
		Health:     status.InProgressStatus,
		Created:    object.GetCreationTimestamp().Time,
		Deleting:   object.GetDeletionTimestamp() != nil,
		Finalizers: object.GetFinalizers(),
	}
}

// parseVersion reads a resourceVersion: a decimal number, comparable within one
// resource (KEP-5504). What is no number counts as the oldest.
func parseVersion(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// fieldsHash hashes our entry: what we set, in which version. The entry's time
// is left out, and the JSON is brought into one order, since the same set comes
// with other bytes from a watch than from an answer.
func fieldsHash(entries []metav1.ManagedFieldsEntry) string {
	for _, entry := range entries {
		if entry.Manager != Manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return unreadable
		}
		return hashOf(entry.APIVersion, fields)
	}
	return ""
}

// watchedFields is fieldsHash of an object as the watch delivers it, without the
// detour over types: it is what a watch event costs us most.
func watchedFields(u *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
	entries, _ := value.([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		subresource, _ := entry["subresource"].(string)
		if entry["manager"] != Manager || entry["operation"] != string(metav1.ManagedFieldsOperationApply) || subresource != "" || entry["fieldsV1"] == nil {
			continue
		}
		fields, ok := entry["fieldsV1"].(map[string]any)
		if !ok {
			return unreadable
		}
		version, _ := entry["apiVersion"].(string)
		return hashOf(version, fields)
	}
	return ""
}

// unreadable stands for an entry of ours that is not JSON.
const unreadable = "unreadable"

func hashOf(apiVersion string, fields map[string]any) string {
	canonical, err := json.Marshal(fields)
	if err != nil {
		return unreadable
	}
	sum := sha256.Sum256(append([]byte(apiVersion+"\n"), canonical...))
	return hex.EncodeToString(sum[:16])
}

// statusGrace is how long a custom resource without a status may still get one.
const statusGrace = 30 * time.Second

// health is the state that counts at a time, and how long it is until time
// alone changes it (zero: never).
func (l Live) health(now time.Time) (s status.Status, message string, wait time.Duration) {
	if !l.Bare {
		return l.Health, l.Message, 0
	}
	if left := statusGrace - now.Sub(l.Created); left > 0 {
		return status.InProgressStatus, "no controller has written a status yet", left
	}
	return status.CurrentStatus, NoStatus, 0
}

// NoStatus is the message of a custom resource that counts as current because
// nobody says anything else.
const NoStatus = "NoStatus"

// unavailable tells why an APIService is not served, which kstatus does not look
// at: its condition is Available, not Ready.
func unavailable(u *unstructured.Unstructured) string {
	if u.GroupVersionKind().GroupKind().String() != "APIService.apiregistration.k8s.io" {
		return ""
	}
	object, err := status.GetObjectWithConditions(u.Object)
	if err != nil {
		return err.Error()
	}
	for _, c := range object.Status.Conditions {
		if c.Type == "Available" && c.Status != corev1.ConditionTrue {
			return "not available: " + c.Message
		}
	}
	return ""
}

// empty tells that a status says nothing.
func empty(told any) bool {
	fields, ok := told.(map[string]any)
	return told == nil || (ok && len(fields) == 0)
}
