package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// refusals are what an API server says, in its own words.
func conflictOf(managers ...string) *apierrors.StatusError {
	var causes []metav1.StatusCause
	for i, manager := range managers {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: fmt.Sprintf("conflict with %q", manager), Field: fmt.Sprintf(".data.k%d", i)})
	}
	return apierrors.NewApplyConflict(causes, fmt.Sprintf("Apply failed with %d conflicts", len(causes)))
}

func invalidOf(errs ...*field.Error) *apierrors.StatusError {
	return apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "d", errs)
}

func statusOf(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

func TestARefusalIsToldByItsCode(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	terminating := apierrors.NewForbidden(resource, "a", errors.New("being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	immutable := func(message string) error {
		return invalidOf(field.Invalid(field.NewPath("spec"), "x", message))
	}
	cases := map[string]struct {
		err  error
		want Reason
	}{
		"a field manager's conflict":              {conflictOf("kubectl"), OwnedByOther},
		"a conflict of versions":                  {apierrors.NewConflict(resource, "a", errors.New("the object has been modified")), Failed},
		"a policy's denial (422 without a field)": {apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", nil), Denied},
		"a policy's denial with a cause":          {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: "no latest"}}}}}, Denied},
		"a webhook's denial":                      {apierrors.NewForbidden(resource, "a", errors.New("admission webhook denied the request")), Denied},
		"a quota":                                 {apierrors.NewForbidden(resource, "a", errors.New("exceeded quota")), Denied},
		"a namespace that is being deleted (B17)": {terminating, Failed},
		"an immutable selector (B06)":             {immutable("field is immutable"), ImmutableField},
		"a StatefulSet's template (B06)":          {invalidOf(field.Forbidden(field.NewPath("spec"), "updates to statefulset spec for fields other than 'replicas' are forbidden")), ImmutableField},
		"a Service's address":                     {immutable("may not change once set"), ImmutableField},
		"an invalid object (F1)":                  {apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "svc", field.ErrorList{field.Required(field.NewPath("spec", "ports"), "")}), InvalidObject},
		"a field that nobody knows":               {statusOf(400, metav1.StatusReasonBadRequest, `strict decoding error: unknown field "spec.replcas"`), InvalidObject},
		"an environment variable twice (B01)":     {statusOf(500, "", "failed to create typed patch object (web/d; apps/v1, Kind=Deployment): duplicate entries for key"), InvalidObject},
		"a webhook that does not answer":          {apierrors.NewInternalError(errors.New("failed calling webhook")), Failed},
		"a namespace that is not there":           {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "web"), Failed},
		"a kind that is not served any more":      {apierrors.NewGenericServerResponse(404, "PATCH", resource, "a", "404 page not found", 0, true), KindNotServed},
		"an object that is too large (B16)":       {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), Failed},
		"a webhook that denies with a 429":        {statusOf(429, metav1.StatusReasonTooManyRequests, "no"), Failed},
		"an API whose server is away":             {apierrors.NewServiceUnavailable("no backend"), Failed},
		"wrapped in words":                        {fmt.Errorf("a: %w", conflictOf("kubectl")), OwnedByOther},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := classify(test.err)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestWhatSaysNothingOfTheObjectEndsThePass(t *testing.T) {
	for name, err := range map[string]error{
		"a transport that fails":    &url.Error{Op: "Patch", URL: "https://10.0.0.1/", Err: errors.New("connection refused")},
		"the end of the process":    context.Canceled,
		"credentials that ran out":  apierrors.NewUnauthorized("expired"),
		"a server that is too busy": apierrors.NewTooManyRequests("later", 3),
	} {
		t.Run(name, func(t *testing.T) {
			_, got := classify(err)
			require.ErrorIs(t, got, err)
			_, is := errors.AsType[errUnreachable](got)
			assert.True(t, is)
			assert.True(t, strings.HasPrefix(got.Error(), "API server: "))
		})
	}
}

func TestAMessageSaysWhatToDo(t *testing.T) {
	id := ID{Kind: "ConfigMap", Namespace: "web", Name: "a"}
	assert.Equal(t, `another field manager holds fields of it (conflict with "x" at .data.k0; conflict with "y" at .data.k1): remove it from the fleet repository, or delete the live object or hand its fields over, and it will be taken`,
		explain(id, OwnedByOther, conflictOf("x", "y")))
	assert.Contains(t, explain(id, OwnedByOther, conflictOf("a", "b", "c", "d", "e")), "and 2 more)")
	assert.Contains(t, explain(id, ImmutableField, errors.New("x")), "delete the live object")
	assert.Contains(t, explain(id, Denied, errors.New("x")), "the policy that refuses it")
	assert.Equal(t, "x", explain(id, Failed, errors.New("x")))
}

func TestAMessageIsBounded(t *testing.T) {
	id := ID{Kind: "ConfigMap", Namespace: "web", Name: "a"}
	long := explain(id, Failed, errors.New(strings.Repeat("ä", 2<<20))) // B16
	assert.LessOrEqual(t, len(long), maxMessage+len("..."))
	assert.True(t, strings.HasSuffix(long, "ä..."), "cut between letters")
	assert.Equal(t, strings.Repeat("x", maxMessage), explain(id, Failed, errors.New(strings.Repeat("x", maxMessage))))
	fields := invalidOf()
	for range 10000 {
		fields.ErrStatus.Details.Causes = append(fields.ErrStatus.Details.Causes, metav1.StatusCause{Field: "data[key]"})
	}
	assert.LessOrEqual(t, len(explain(ID{Kind: "Secret", Name: "s"}, InvalidObject, fields)), maxMessage+len("..."))
}

func TestOfASecretOnlyFieldsAreNamed(t *testing.T) {
	secret := ID{Kind: "Secret", Namespace: "web", Name: "s"}
	err := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "s", field.ErrorList{field.Invalid(field.NewPath("data").Key("password"), "hunter2", "too short")})
	for _, reason := range []Reason{InvalidObject, Denied, ImmutableField, Failed, OwnedByOther, PruneFailed, KindNotServed} {
		for name, err := range map[string]error{"with a field": err, "plain": errors.New("hunter2"), "a status": statusOf(http.StatusInternalServerError, "", "failed to create typed patch object: hunter2")} {
			got := explain(secret, reason, err)
			assert.NotContains(t, got, "hunter2", "%s %s", reason, name)
			assert.Contains(t, got, string(reason))
		}
	}
	assert.Contains(t, explain(secret, InvalidObject, err), "data[password]")
	assert.Contains(t, explain(ID{Group: "example.com", Kind: "Secret", Name: "s"}, Failed, errors.New("text")), "text", "another group's Secret is none")
}

func TestAFailureNamesFileObjectAndCause(t *testing.T) {
	f := Failure{ID: ID{Kind: "ConfigMap", Namespace: "web", Name: "a"}, File: "web/a.yaml", Message: "no"}
	assert.Equal(t, "web/a.yaml: ConfigMap/web/a: no", f.String())
	f.File = ""
	assert.Equal(t, "ConfigMap/web/a: no", f.String())
}
