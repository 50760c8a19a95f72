package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// requests are the few requests that we send for an object. Each asks for the
// metadata of the answer only: a large object costs its bytes once.
type requests struct {
	client rest.Interface
}

func newRequests(config *rest.Config) (requests, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{}
	config.APIPath = "/"
	config.NegotiatedSerializer = metainternalversionscheme.Codecs.WithoutConversion()
	config.WarningHandlerWithContext = rest.NoWarnings{}
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return requests{}, fmt.Errorf("make a client: %w", err)
	}
	return requests{client}, nil
}

const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// answer is what a write tells of the object.
type answer struct {
	metav1.PartialObjectMetadata
	created bool
}

// apply is one server-side apply (KEP-555). Unknown and duplicate fields are
// refused by the server: a typo is an error, not a field that silently is not
// there.
func (r requests) apply(ctx context.Context, resource Resource, id ID, body []byte, force bool) (answer, error) {
	return do(ctx, r.client.Patch(types.ApplyYAMLPatchType).
		AbsPath(path(resource, id)).
		Param("fieldManager", Manager).
		Param("fieldValidation", metav1.FieldValidationStrict).
		Param("force", strconv.FormatBool(force)).
		Body(body))
}

// patch is a JSON patch (RFC 6902) that holds only for one version of the object.
func (r requests) patch(ctx context.Context, resource Resource, id ID, version string, patches []ssa.JSONPatch) error {
	operations := []any{map[string]string{"op": "replace", "path": "/metadata/resourceVersion", "value": version}}
	for _, p := range patches {
		operations = append(operations, p)
	}
	body, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	_, err = do(ctx, r.client.Patch(types.JSONPatchType).
		AbsPath(path(resource, id)).
		Param("fieldManager", Manager).
		Body(body))
	return err
}

// get reads an object's metadata. found is false only where the API server says
// that there is no such object.
func (r requests) get(ctx context.Context, resource Resource, id ID) (object metav1.PartialObjectMetadata, found bool, err error) {
	a, err := do(ctx, r.client.Get().AbsPath(path(resource, id)))
	if apierrors.IsNotFound(err) && !unknownPath(err) {
		return metav1.PartialObjectMetadata{}, false, nil
	}
	return a.PartialObjectMetadata, err == nil, err
}

// delete deletes one incarnation of an object, dependents in the background. It
// is a conflict where the object is another one by now.
func (r requests) delete(ctx context.Context, resource Resource, id ID, uid types.UID) error {
	background := metav1.DeletePropagationBackground
	options, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &background,
	})
	if err != nil {
		return fmt.Errorf("encode options: %w", err)
	}
	return r.client.Delete().AbsPath(path(resource, id)).SetHeader("Content-Type", "application/json").Body(options).Do(ctx).Error()
}

func do(ctx context.Context, request *rest.Request) (answer, error) {
	var a answer
	result := request.SetHeader("Accept", metadataOnly).Do(ctx).WasCreated(&a.created)
	if err := result.Error(); err != nil {
		return answer{}, err
	}
	raw, err := result.Raw()
	if err != nil {
		return answer{}, err
	}
	if err := json.Unmarshal(raw, &a.PartialObjectMetadata); err != nil {
		return answer{}, fmt.Errorf("decode answer: %w", err)
	}
	return a, nil
}

func path(resource Resource, id ID) string {
	var b strings.Builder
	if resource.Group == "" {
		b.WriteString("/api/" + resource.Version)
	} else {
		b.WriteString("/apis/" + resource.Group + "/" + resource.Version)
	}
	if resource.Namespaced {
		b.WriteString("/namespaces/" + id.Namespace)
	}
	return b.String() + "/" + resource.Resource + "/" + id.Name
}

// foreignTool names the GitOps tool or package manager that also writes the
// object, from the managers of its fields.
func foreignTool(entries []metav1.ManagedFieldsEntry) string {
	for _, entry := range entries {
		switch {
		case entry.Manager == "kustomize-controller", entry.Manager == "helm-controller":
			return "Flux (" + entry.Manager + ")"
		case strings.HasPrefix(entry.Manager, "argocd-"):
			return "Argo CD (" + entry.Manager + ")"
		case strings.EqualFold(entry.Manager, "helm"):
			return "Helm"
		}
	}
	return ""
}

// takeOver gives the JSON patch that makes the fields of kubectl ours, and nil
// where there are none: what kubectl once set and Git does not want would stay
// for ever (kubernetes#99003). Of an object that we were installed with it takes
// those of whoever installed it.
func takeOver(object metav1.PartialObjectMetadata) ([]ssa.JSONPatch, error) {
	from := []ssa.FieldManager{
		{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
		{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
		{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate, ExactMatch: true},
	}
	if installed(object) {
		from = append(from, installers(object.ManagedFields)...)
	}
	return ssa.PatchReplaceFieldsManagers(withMetadata(object), from, Manager)
}

// installed tells that an object says of itself that it came with the agent, as
// all in manifests/ do.
func installed(object metav1.PartialObjectMetadata) bool {
	return object.Labels["app.kubernetes.io/part-of"] == "fleetling"
}

// installers are the managers that may have created an object: those that
// created or updated it and are no part of Kubernetes.
func installers(entries []metav1.ManagedFieldsEntry) []ssa.FieldManager {
	var found []ssa.FieldManager
	for _, entry := range entries {
		if entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" && !strings.HasPrefix(entry.Manager, "kube") {
			found = append(found, ssa.FieldManager{Name: entry.Manager, OperationType: entry.Operation, ExactMatch: true})
		}
	}
	return found
}

// letGo gives the JSON patch that takes our label and our manager off an object
// and leaves all its fields as they are.
func letGo(object metav1.PartialObjectMetadata) []ssa.JSONPatch {
	u := withMetadata(object)
	return append(
		ssa.PatchRemoveFieldsManagers(u, []ssa.FieldManager{{Name: Manager, OperationType: metav1.ManagedFieldsOperationApply, ExactMatch: true}}),
		ssa.PatchRemoveLabels(u, []string{AddOnLabel})...)
}

func withMetadata(object metav1.PartialObjectMetadata) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetManagedFields(object.ManagedFields)
	u.SetLabels(object.Labels)
	return u
}

// bodyFor is the object's JSON as this server takes it: without a namespace
// that does not count.
func bodyFor(o Object, resource Resource) ([]byte, error) {
	if resource.Namespaced || o.Namespace == "" {
		return o.Body, nil
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(o.Body); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	u.SetNamespace("")
	return u.MarshalJSON()
}

// nothingOf is an object without a field: applied, it takes our manager out of
// the live one again.
func nothingOf(o Object, id ID) ([]byte, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(o.GVK)
	u.SetName(id.Name)
	u.SetNamespace(id.Namespace)
	return u.MarshalJSON()
}
