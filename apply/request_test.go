package apply

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// recorder answers every request alike and keeps them with their bodies.
type recorder struct {
	code     int
	text     string
	requests []*http.Request
	bodies   []string
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body := ""
	if req.Body != nil {
		raw, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		body = string(raw)
	}
	r.requests, r.bodies = append(r.requests, req), append(r.bodies, body)
	return response(req, r.code, "application/json", []byte(r.text)), nil
}

func recording(t *testing.T, code int, text string) (requests, *recorder) {
	t.Helper()
	r := &recorder{code: code, text: text}
	client, err := newRequests(&rest.Config{Host: "http://cluster", Transport: r, QPS: -1})
	require.NoError(t, err)
	return client, r
}

var (
	configMaps = Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}
	answerText = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","namespace":"web","uid":"u1","resourceVersion":"7"}}`
)

func TestPathsAreThoseOfTheAPI(t *testing.T) {
	resource := func(group, name string, namespaced bool) Resource {
		return Resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}, Namespaced: namespaced}
	}
	assert.Equal(t, "/api/v1/namespaces/web/configmaps/a", path(resource("", "configmaps", true), viewID))
	assert.Equal(t, "/api/v1/namespaces/web", path(resource("", "namespaces", false), ID{Kind: "Namespace", Name: "web"}))
	assert.Equal(t, "/apis/apps/v1/namespaces/web/deployments/d", path(resource("apps", "deployments", true), ID{Namespace: "web", Name: "d"}))
	assert.Equal(t, "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:x", path(resource("rbac.authorization.k8s.io", "clusterroles", false), ID{Name: "system:x"}))
}

func TestAnApplyIsStrictAndAsksForMetadataOnly(t *testing.T) {
	for _, code := range []int{http.StatusOK, http.StatusCreated} {
		r, seen := recording(t, code, answerText)
		got, err := r.apply(t.Context(), configMaps, viewID, []byte(`{"x":1}`), true)
		require.NoError(t, err)
		assert.Equal(t, code == http.StatusCreated, got.created)
		assert.Equal(t, "7", got.ResourceVersion)
		req := seen.requests[0]
		assert.Equal(t, "PATCH", req.Method)
		assert.Equal(t, "/api/v1/namespaces/web/configmaps/a?fieldManager=fleetling&fieldValidation=Strict&force=true", req.URL.RequestURI())
		assert.Equal(t, "application/apply-patch+yaml", req.Header.Get("Content-Type"))
		assert.Equal(t, metadataOnly, req.Header.Get("Accept"))
		assert.Equal(t, `{"x":1}`, seen.bodies[0])
	}
	r, seen := recording(t, http.StatusOK, answerText)
	_, err := r.apply(t.Context(), configMaps, viewID, nil, false)
	require.NoError(t, err)
	assert.Equal(t, "false", seen.requests[0].URL.Query().Get("force"))
}

func TestANameIsAPathSegmentWhateverIsInIt(t *testing.T) {
	r, seen := recording(t, http.StatusOK, answerText)
	_, _, err := r.get(t.Context(), configMaps, ID{Kind: "ConfigMap", Namespace: "web", Name: "a?x=#y z"})
	require.NoError(t, err)
	assert.Equal(t, "/api/v1/namespaces/web/configmaps/a?x=#y z", seen.requests[0].URL.Path)
	assert.Empty(t, seen.requests[0].URL.RawQuery)
}

func TestAPatchHoldsForOneVersion(t *testing.T) {
	r, seen := recording(t, http.StatusOK, answerText)
	object := metav1.PartialObjectMetadata{}
	object.Labels = map[string]string{AddOnLabel: "shop", "app": "x"}
	object.ManagedFields = []metav1.ManagedFieldsEntry{ours(ourFields)}
	require.NoError(t, r.patch(t.Context(), configMaps, viewID, "7", letGo(object)))
	assert.Equal(t, "application/json-patch+json", seen.requests[0].Header.Get("Content-Type"))
	assert.JSONEq(t, `[
		{"op":"replace","path":"/metadata/resourceVersion","value":"7"},
		{"op":"replace","path":"/metadata/managedFields","value":[{}]},
		{"op":"remove","path":"/metadata/labels/fleetling.dev~1addon"}]`, seen.bodies[0])
}

func TestADeleteNamesTheIncarnation(t *testing.T) {
	r, seen := recording(t, http.StatusOK, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	require.NoError(t, r.delete(t.Context(), configMaps, viewID, "u1"))
	assert.Equal(t, "DELETE", seen.requests[0].Method)
	var options metav1.DeleteOptions
	require.NoError(t, json.Unmarshal([]byte(seen.bodies[0]), &options))
	assert.Equal(t, "u1", string(*options.Preconditions.UID))
	assert.Equal(t, metav1.DeletePropagationBackground, *options.PropagationPolicy)
}

func TestOnlyTheServersWordIsProofThatAnObjectIsNotThere(t *testing.T) {
	notFound := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"a","kind":"configmaps"}}`
	for name, test := range map[string]struct {
		code        int
		text        string
		found, fail bool
	}{
		"it is there":            {200, answerText, true, false},
		"it is not there":        {404, notFound, false, false},
		"no such path":           {404, "404 page not found", false, true},
		"forbidden":              {403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, false, true},
		"a server with a fault":  {500, "oops", false, true},
		"an answer that is none": {200, "<html>", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := recording(t, test.code, test.text)
			_, found, err := r.get(t.Context(), configMaps, viewID)
			assert.Equal(t, test.found, found)
			assert.Equal(t, test.fail, err != nil, "%v", err)
		})
	}
}

func TestToolsAreKnownByTheirManagers(t *testing.T) {
	for manager, want := range map[string]string{
		"kustomize-controller": "Flux (kustomize-controller)", "helm-controller": "Flux (helm-controller)",
		"argocd-controller": "Argo CD (argocd-controller)", "argocd-application-controller": "Argo CD (argocd-application-controller)",
		"helm": "Helm", "Helm": "Helm", "kubectl": "", "kube-controller-manager": "", Manager: "", "helmet": "",
	} {
		assert.Equal(t, want, foreignTool([]metav1.ManagedFieldsEntry{{Manager: "someone"}, {Manager: manager}}), manager)
	}
}

func TestOnlyWholeObjectsOfKubectlAreTakenOver(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, subresource string) metav1.ManagedFieldsEntry {
		return fieldsEntry(manager, operation, subresource, `{"f:data":{"f:z":{}}}`)
	}
	update, apply := metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	for name, test := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		taken bool
	}{
		"client-side apply":       {entry("kubectl-client-side-apply", update, ""), true},
		"edit":                    {entry("kubectl-edit", update, ""), true},
		"server-side apply":       {entry("kubectl", apply, ""), true},
		"before the first":        {entry("before-first-apply", update, ""), true},
		"scale":                   {entry("kubectl", update, "scale"), false},
		"a controller":            {entry("kube-controller-manager", update, ""), false},
		"another applier":         {entry("someone", apply, ""), false},
		"a namesake of the first": {entry("before-first-apply-2", update, ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			object := metav1.PartialObjectMetadata{}
			object.ManagedFields = []metav1.ManagedFieldsEntry{test.entry, ours(ourFields)}
			patches, err := takeOver(object)
			require.NoError(t, err)
			assert.Equal(t, test.taken, len(patches) > 0)
			if test.taken {
				entries := patches[0].Value // where one is twice, the last one counts
				for _, e := range entries {
					assert.Equal(t, Manager, e.Manager)
				}
				assert.Contains(t, string(entries[len(entries)-1].FieldsV1.GetRawBytes()), "f:z")
			}
		})
	}
}

func TestTheNamespaceOfAClusterScopedObjectIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, "rbac.authorization.k8s.io/v1 ClusterRole cluster")
		e := c.engine(t)
		report := e.settle(t, wants(t, "shop", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader, namespace: oops}}"), soon)
		require.True(t, report.AddOns[0].Applied(), "%+v", report)
		assert.Empty(t, c.get("rbac.authorization.k8s.io/ClusterRole//reader").GetNamespace())
		assert.Equal(t, map[string]string{"shop-0": "rbac.authorization.k8s.io/ClusterRole//reader\n"}, c.inventory(t))
	})
}
