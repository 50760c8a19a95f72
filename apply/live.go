package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
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
	live := liveMeta(u)
	live.Health, live.Message = status.UnknownStatus, ""
	if result, err := status.Compute(u); err != nil {
		live.Message = err.Error()
	} else {
		live.Health, live.Message = result.Status, result.Message
	}
	_, hasStatus := u.Object["status"]
	live.Bare = !hasStatus && live.Health == status.CurrentStatus && !scheme.Scheme.Recognizes(u.GroupVersionKind())
	return live
}

// liveMeta reduces what an answer without spec and status holds.
func liveMeta(object metav1.Object) Live {
	return Live{
		UID:        object.GetUID(),
		Version:    parseVersion(object.GetResourceVersion()),
		Fields:     fieldsHash(object.GetManagedFields()),
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
			return "unreadable"
		}
		canonical, err := json.Marshal(fields)
		if err != nil {
			return "unreadable"
		}
		sum := sha256.Sum256(append([]byte(entry.APIVersion+"\n"), canonical...))
		return hex.EncodeToString(sum[:16])
	}
	return ""
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
