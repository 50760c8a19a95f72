package apply

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reason is the machine-readable cause why an object is not as it should be.
type Reason string

// Reasons, in the words of status.
const (
	InvalidObject   Reason = "InvalidObject"
	DuplicateObject Reason = "DuplicateObject"
	KindNotServed   Reason = "KindNotServed"
	Denied          Reason = "Denied"
	ImmutableField  Reason = "ImmutableField"
	Failed          Reason = "ApplyFailed"
	OwnedByOther    Reason = "OwnedByOther"
	PruneFailed     Reason = "PruneFailed"
)

// Failure is one object that could not be applied or deleted, and why, in words
// that a person can act on.
type Failure struct {
	ID      ID
	File    string
	Reason  Reason
	Message string
}

// String is "file: Kind/namespace/name: message".
func (f Failure) String() string {
	text := f.ID.String() + ": " + f.Message
	if f.File != "" {
		text = f.File + ": " + text
	}
	return text
}

// errUnreachable marks an error that says nothing of the object: the API server
// did not answer, or it is not ours to write now.
type errUnreachable struct{ err error }

func (e errUnreachable) Error() string { return "API server: " + e.err.Error() }
func (e errUnreachable) Unwrap() error { return e.err }

// classify tells what an API server's refusal means for the object. An error
// that is no answer of the API server gives errUnreachable.
func classify(err error) (Reason, error) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return "", errUnreachable{err}
	}
	s := status.Status()
	switch {
	case s.Reason == metav1.StatusReasonUnauthorized, overloaded(err):
		return "", errUnreachable{err}
	case unknownPath(err):
		return KindNotServed, nil
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		return OwnedByOther, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Failed, nil
	case s.Reason == metav1.StatusReasonForbidden:
		return Denied, nil
	case s.Reason == metav1.StatusReasonInvalid:
		return invalid(causesOf(err)), nil
	case s.Code == http.StatusBadRequest, malformed(s):
		return InvalidObject, nil
	}
	return Failed, nil
}

// overloaded tells that the API server sends us away for a while (API Priority
// and Fairness). A webhook that denies with the same code names no time.
func overloaded(err error) bool {
	_, later := apierrors.SuggestsClientDelay(err)
	return later && apierrors.IsTooManyRequests(err)
}

// unknownPath tells that the API server does not serve the kind that it had told
// of. It is not an answer about the object.
func unknownPath(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// malformed tells that the server can't read the object, as with a list entry
// twice or a field that its schema does not have. That has no code but 500, and
// its text is all there is (apimachinery managedfields, structuredmerge.go). The
// result only words a message.
func malformed(s metav1.Status) bool {
	return s.Code == http.StatusInternalServerError && strings.Contains(s.Message, "failed to create typed patch object")
}

// invalid tells the three meanings of 422 apart. An admission policy denies
// with it and names no field; an immutable field has no code of its own, so its
// text is all there is (apimachinery validation.FieldImmutableErrorMsg and what
// StatefulSets, Pods and Services say). The result only words a message: nothing is deleted for it.
func invalid(causes []metav1.StatusCause) Reason {
	if !slices.ContainsFunc(causes, func(c metav1.StatusCause) bool { return c.Field != "" }) {
		return Denied
	}
	if slices.ContainsFunc(causes, func(c metav1.StatusCause) bool {
		return strings.Contains(c.Message, "immutable") || strings.Contains(c.Message, "may not change") ||
			strings.Contains(c.Message, "updates to statefulset spec")
	}) {
		return ImmutableField
	}
	return InvalidObject
}

func causesOf(err error) []metav1.StatusCause {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Details == nil {
		return nil
	}
	return status.ErrStatus.Details.Causes
}

// maxMessage bounds a message in bytes: a webhook may answer with megabytes.
const maxMessage = 2 << 10

// explain words a refusal.
func explain(id ID, reason Reason, err error) string {
	message := word(id, reason, err)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "..."
	}
	return message
}

// word words a refusal in full. Of a Secret only fields are named: the server's
// text may quote values.
func word(id ID, reason Reason, err error) string {
	if id.Group == "" && id.Kind == "Secret" {
		return explainSecret(reason, err)
	}
	switch reason {
	case OwnedByOther:
		return "another field manager holds fields of it (" + conflicts(err) + "): remove it from the fleet repository, or delete the live object or hand its fields over, and it will be taken"
	case ImmutableField:
		return err.Error() + ": delete the live object to have it made anew, or take the change back"
	case Denied:
		return err.Error() + ": change the object or the policy that refuses it"
	default:
		return err.Error()
	}
}

func explainSecret(reason Reason, err error) string {
	var fields []string
	for _, cause := range causesOf(err) {
		fields = append(fields, cause.Field)
	}
	return fmt.Sprintf("the API server refused it (%s; fields: %s); its text is not shown, as it may quote the Secret", reason, strings.Join(fields, ", "))
}

// conflicts lists the causes of a server-side apply conflict: the server names
// manager and field in each.
func conflicts(err error) string {
	var all []string
	for _, cause := range causesOf(err) {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			all = append(all, cause.Message+" at "+cause.Field)
		}
	}
	more := ""
	if len(all) > 3 {
		more = fmt.Sprintf(" and %d more", len(all)-3)
	}
	return strings.Join(all[:min(len(all), 3)], "; ") + more
}
