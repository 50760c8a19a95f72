package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/rest"
)

// cluster is an API server in memory, as a transport: discovery, lists, watches,
// server-side apply by apimachinery's own field manager, patches and deletes
// with their preconditions. It has no schemas, so lists are atomic; admission is
// what a test puts into deny.
type cluster struct {
	mu      sync.Mutex
	version uint64
	serial  int
	kinds   []servedKind
	silent  []schema.GroupVersion
	objects map[string]*unstructured.Unstructured
	watches map[*watchStream]bool
	// muted keeps what the watches would say until it is given free again.
	muted bool
	held  []func()
	// writes are the requests that are not reads, as "METHOD path" with the
	// parameters that matter, and reads the reads of single objects.
	writes, reads []string
	// deny refuses a request, crash ends the process before or after a write
	// takes effect.
	deny  func(method, path string) *apierrors.StatusError
	crash func(write int, after bool) bool
}

type servedKind struct {
	gvk        schema.GroupVersionKind
	resource   string
	namespaced bool
}

var errCrashed = errors.New("the process is dead")

// newCluster serves kinds, each as "GROUP/VERSION KIND namespaced|cluster".
func newCluster(kinds ...string) *cluster {
	c := &cluster{version: 100, objects: map[string]*unstructured.Unstructured{}, watches: map[*watchStream]bool{}}
	for _, line := range append([]string{"v1 ConfigMap namespaced", "v1 Namespace cluster", "v1 Secret namespaced"}, kinds...) {
		c.serve(line)
	}
	return c
}

func (c *cluster) serve(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	words := strings.Fields(line)
	gvk := schema.FromAPIVersionAndKind(words[0], words[1])
	c.kinds = append(c.kinds, servedKind{gvk, strings.ToLower(words[1]) + "s", words[2] == "namespaced"})
}

// engine makes an engine on the cluster. It is closed with the test.
func (c *cluster) engine(t *testing.T) *testEngine {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	changed := make(chan struct{}, 1)
	e, err := New(ctx, Config{
		REST:      &rest.Config{Host: "http://cluster", Transport: c, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}},
		Namespace: "fleetling-system", Now: time.Now,
		Changed: func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
	})
	require.NoError(t, err)
	out := &testEngine{Engine: e, changed: changed}
	out.stop = sync.OnceFunc(func() { cancel(); e.Close() })
	t.Cleanup(out.stop)
	return out
}

type testEngine struct {
	*Engine
	changed chan struct{}
	stop    func()
}

// RoundTrip answers one request.
func (c *cluster) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if req.URL.Query().Get("watch") == "true" {
		return c.watch(req)
	}
	body, err := c.answer(req)
	if errors.Is(err, errCrashed) {
		return nil, err
	}
	code := http.StatusOK
	if err != nil {
		var refused *apierrors.StatusError
		if !errors.As(err, &refused) {
			refused = apierrors.NewInternalError(err)
		}
		status := refused.ErrStatus
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		body, code = status, int(status.Code)
		if plain := unexpectedText(refused); plain != "" {
			return response(req, code, "text/plain", []byte(plain)), nil
		}
	}
	if made, ok := body.(created); ok {
		body, code = made.object, http.StatusCreated
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return response(req, code, "application/json", raw), nil
}

type created struct{ object any }

func unexpectedText(err *apierrors.StatusError) string {
	if err.ErrStatus.Details != nil && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return "404 page not found"
	}
	return ""
}

func response(req *http.Request, code int, contentType string, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func (c *cluster) answer(req *http.Request) (any, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, err := c.discovery(req.URL.Path); found != nil || err != nil {
		return found, err
	}
	if req.Method == http.MethodGet {
		return c.read(req)
	}
	line := req.Method + " " + req.URL.Path
	if force := req.URL.Query().Get("force"); force != "" {
		line += " force=" + force
	}
	n := len(c.writes)
	if c.crash != nil && c.crash(n, false) {
		return nil, errCrashed
	}
	c.writes = append(c.writes, line)
	result, err := c.write(req, body)
	if c.crash != nil && c.crash(n, true) {
		return nil, errCrashed
	}
	return result, err
}

// target is what a path names.
type target struct {
	kind            servedKind
	namespace, name string
}

func (t target) key(namespace, name string) string {
	return t.kind.gvk.Group + "/" + t.kind.gvk.Kind + "/" + namespace + "/" + name
}

func (c *cluster) target(path string) (target, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	unknown := apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "404 page not found", 0, true)
	var gv schema.GroupVersion
	switch {
	case len(parts) > 2 && parts[0] == "api":
		gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return target{}, unknown
	}
	var t target
	if len(parts) > 2 && parts[0] == "namespaces" {
		t.namespace, parts = parts[1], parts[2:]
	}
	i := slices.IndexFunc(c.kinds, func(k servedKind) bool { return k.gvk.GroupVersion() == gv && k.resource == parts[0] })
	if i < 0 || len(parts) > 2 {
		return target{}, unknown
	}
	t.kind = c.kinds[i]
	if len(parts) == 2 {
		t.name = parts[1]
	}
	return t, nil
}

// as is an object in the version that was asked for.
func (t target) as(object *unstructured.Unstructured) map[string]any {
	content := maps.Clone(object.Object)
	content["apiVersion"] = t.kind.gvk.GroupVersion().String()
	return content
}

func (t target) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: t.kind.gvk.Group, Resource: t.kind.resource}
}

// discovery answers in the form that all API servers know.
func (c *cluster) discovery(path string) (any, error) {
	switch parts := strings.Split(strings.Trim(path, "/"), "/"); {
	case path == "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}, nil
	case path == "/apis":
		return c.groups(), nil
	case len(parts) == 2 && parts[0] == "api":
		return c.resources(schema.GroupVersion{Version: parts[1]}), nil
	case len(parts) == 3 && parts[0] == "apis":
		gv := schema.GroupVersion{Group: parts[1], Version: parts[2]}
		if slices.Contains(c.silent, gv) {
			return nil, apierrors.NewServiceUnavailable("no backend")
		}
		return c.resources(gv), nil
	}
	return nil, nil
}

func (c *cluster) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	versions := slices.Clone(c.silent)
	for _, k := range c.kinds {
		versions = append(versions, k.gvk.GroupVersion())
	}
	for _, gv := range versions {
		version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		i := slices.IndexFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == gv.Group })
		switch {
		case gv.Group == "":
		case i < 0:
			list.Groups = append(list.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		case !slices.Contains(list.Groups[i].Versions, version):
			list.Groups[i].Versions = append(list.Groups[i].Versions, version)
		}
	}
	return list
}

func (c *cluster) resources(gv schema.GroupVersion) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, k := range c.kinds {
		if k.gvk.GroupVersion() == gv {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.resource, Kind: k.gvk.Kind, Namespaced: k.namespaced, Verbs: metav1.Verbs{"get", "list", "watch", "patch", "delete"},
			}, metav1.APIResource{Name: k.resource + "/status", Kind: k.gvk.Kind, Namespaced: k.namespaced, Verbs: metav1.Verbs{"get", "patch"}})
		}
	}
	return list
}

func (c *cluster) read(req *http.Request) (any, error) {
	t, err := c.target(req.URL.Path)
	if err != nil {
		return nil, err
	}
	if t.name != "" {
		c.reads = append(c.reads, "GET "+req.URL.Path)
		if c.deny != nil {
			if refused := c.deny(req.Method, req.URL.Path); refused != nil {
				return nil, refused
			}
		}
		object := c.objects[t.key(t.namespace, t.name)]
		if object == nil {
			return nil, apierrors.NewNotFound(t.groupResource(), t.name)
		}
		return t.as(object), nil
	}
	items := []any{}
	for _, object := range c.matching(t, req.URL.Query().Get("labelSelector")) {
		items = append(items, t.as(object))
	}
	return map[string]any{
		"kind": t.kind.gvk.Kind + "List", "apiVersion": t.kind.gvk.GroupVersion().String(), "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.FormatUint(c.version, 10)},
	}, nil
}

func (c *cluster) matching(t target, selector string) []*unstructured.Unstructured {
	parsed, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	var all []*unstructured.Unstructured
	for _, key := range slices.Sorted(maps.Keys(c.objects)) {
		object := c.objects[key]
		if strings.HasPrefix(key, t.kind.gvk.Group+"/"+t.kind.gvk.Kind+"/"+t.namespace) && parsed.Matches(labels.Set(object.GetLabels())) {
			all = append(all, object)
		}
	}
	return all
}

func (c *cluster) write(req *http.Request, body []byte) (any, error) {
	t, err := c.target(req.URL.Path)
	if err != nil {
		return nil, err
	}
	if c.deny != nil {
		if refused := c.deny(req.Method, req.URL.Path); refused != nil {
			return nil, refused
		}
	}
	key := t.key(t.namespace, t.name)
	switch req.Method {
	case http.MethodDelete:
		return c.delete(t, key, body)
	case http.MethodPatch:
		if req.Header.Get("Content-Type") == string(types.JSONPatchType) {
			return c.jsonPatch(t, key, body)
		}
		query := req.URL.Query()
		return c.apply(t, key, body, query.Get("fieldManager"), query.Get("force") == "true")
	}
	return c.replace(t, req, body)
}

// replace is what POST and PUT do.
func (c *cluster) replace(t target, req *http.Request, body []byte) (any, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	object.SetNamespace(t.namespace)
	old := c.objects[t.key(t.namespace, object.GetName())]
	if req.Method == http.MethodPost && old != nil {
		return nil, apierrors.NewAlreadyExists(t.groupResource(), object.GetName())
	}
	if req.Method == http.MethodPut && (old == nil || old.GetResourceVersion() != object.GetResourceVersion()) {
		return nil, apierrors.NewConflict(t.groupResource(), object.GetName(), errors.New("it was changed"))
	}
	return c.put(t, object, req.URL.Query().Get("fieldManager"))
}

// put stores an object as an update by a manager.
func (c *cluster) put(t target, object *unstructured.Unstructured, manager string) (any, error) {
	old := c.objects[t.key(object.GetNamespace(), object.GetName())]
	before := old
	if before == nil {
		before = blank(t.kind.gvk)
	}
	next := fieldManagerFor(t.kind.gvk).UpdateNoErrors(before, object, manager).(*unstructured.Unstructured)
	return c.store(t, old, next), nil
}

func blank(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	return u
}

func (c *cluster) apply(t target, key string, body []byte, manager string, force bool) (any, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if object.GetNamespace() != t.namespace || object.GetName() != t.name || object.GetKind() != t.kind.gvk.Kind {
		return nil, apierrors.NewBadRequest("the object is not the one of the path")
	}
	if t.namespace != "" && c.objects["/Namespace//"+t.namespace] == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, t.namespace)
	}
	old := c.objects[key]
	before := blank(t.kind.gvk)
	if old != nil {
		before = old.DeepCopy()
	}
	next, err := fieldManagerFor(t.kind.gvk).Apply(before, object, manager, force)
	if err != nil {
		return nil, err
	}
	return c.store(t, old, next.(*unstructured.Unstructured)), nil
}

func fieldManagerFor(gvk schema.GroupVersionKind) *managedfields.FieldManager {
	m, err := managedfields.NewDefaultFieldManager(managedfields.NewDeducedTypeConverter(), asIs{}, asIs{}, asIs{}, gvk, gvk.GroupVersion(), "", nil)
	if err != nil {
		panic(err)
	}
	return m
}

// asIs converts, defaults and makes untyped objects: there is one version.
type asIs struct{}

func (asIs) Convert(_, _, _ any) error                               { return errors.New("not converted") }
func (asIs) Default(runtime.Object)                                  {}
func (asIs) New(gvk schema.GroupVersionKind) (runtime.Object, error) { return blank(gvk), nil }
func (asIs) ConvertFieldLabel(_ schema.GroupVersionKind, l, v string) (string, string, error) {
	return l, v, nil
}

func (asIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// store keeps an object, in a new version if it changed, and tells the watches.
func (c *cluster) store(t target, old, next *unstructured.Unstructured) any {
	next = next.DeepCopy()
	if old == nil {
		c.serial++
		next.SetUID(types.UID(fmt.Sprintf("uid-%d", c.serial)))
		next.SetCreationTimestamp(metav1.Now())
	} else {
		next.SetUID(old.GetUID())
		next.SetCreationTimestamp(old.GetCreationTimestamp())
		next.SetResourceVersion(old.GetResourceVersion())
		if equality.Semantic.DeepEqual(timeless(old), timeless(next)) {
			return old.Object
		}
	}
	c.version++
	next.SetResourceVersion(strconv.FormatUint(c.version, 10))
	key := t.key(next.GetNamespace(), next.GetName())
	c.objects[key] = next
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 {
		delete(c.objects, key)
		c.tell(t, old, nil, next)
		return next.Object
	}
	c.tell(t, old, next, next)
	if old == nil {
		return created{next.Object}
	}
	return next.Object
}

func timeless(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	entries := u.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	u.SetManagedFields(entries)
	return u.Object
}

func (c *cluster) delete(t target, key string, body []byte) (any, error) {
	var options metav1.DeleteOptions
	if err := json.Unmarshal(body, &options); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	old := c.objects[key]
	if old == nil {
		return nil, apierrors.NewNotFound(t.groupResource(), t.name)
	}
	if p := options.Preconditions; p != nil {
		if (p.UID != nil && *p.UID != old.GetUID()) || (p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion()) {
			return nil, apierrors.NewConflict(t.groupResource(), t.name, errors.New("precondition failed"))
		}
	}
	next := old.DeepCopy()
	now := metav1.Now()
	next.SetDeletionTimestamp(&now)
	return c.store(t, old, next), nil
}

// jsonPatch knows the operations that are sent: replace of resourceVersion and
// managedFields, remove of a label.
func (c *cluster) jsonPatch(t target, key string, body []byte) (any, error) {
	old := c.objects[key]
	if old == nil {
		return nil, apierrors.NewNotFound(t.groupResource(), t.name)
	}
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(body, &operations); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	next := old.DeepCopy()
	for _, o := range operations {
		label, isLabel := strings.CutPrefix(o.Path, "/metadata/labels/")
		switch {
		case o.Op == "replace" && o.Path == "/metadata/resourceVersion":
			if string(o.Value) != strconv.Quote(old.GetResourceVersion()) {
				return nil, apierrors.NewConflict(t.groupResource(), t.name, errors.New("it was changed"))
			}
		case o.Op == "replace" && o.Path == "/metadata/managedFields":
			var entries []metav1.ManagedFieldsEntry
			if err := json.Unmarshal(o.Value, &entries); err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
			next.SetManagedFields(slices.DeleteFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "" }))
		case o.Op == "remove" && isLabel:
			unstructured.RemoveNestedField(next.Object, "metadata", "labels", strings.ReplaceAll(label, "~1", "/"))
		default:
			return nil, apierrors.NewBadRequest("unknown operation " + o.Op + " " + o.Path)
		}
	}
	return c.store(t, old, next), nil
}

// watchStream is the body of a watch: events until its request ends.
type watchStream struct {
	cluster  *cluster
	target   target
	selector labels.Selector
	done     <-chan struct{}
	events   chan []byte
	rest     []byte
}

func (c *cluster) watch(req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := c.target(req.URL.Path)
	if err != nil {
		return response(req, http.StatusNotFound, "text/plain", []byte("404 page not found")), nil
	}
	if req.URL.Query().Get("sendInitialEvents") != "true" {
		raw, _ := json.Marshal(apierrors.NewResourceExpired("too old").ErrStatus)
		return response(req, http.StatusGone, "application/json", raw), nil
	}
	selector, err := labels.Parse(req.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	stream := &watchStream{cluster: c, target: t, selector: selector, done: req.Context().Done(), events: make(chan []byte, 10000)}
	for _, object := range c.matching(t, selector.String()) {
		stream.send("ADDED", t.as(object))
	}
	stream.send("BOOKMARK", map[string]any{
		"kind": t.kind.gvk.Kind, "apiVersion": t.kind.gvk.GroupVersion().String(),
		"metadata": map[string]any{
			"resourceVersion": strconv.FormatUint(c.version, 10),
			"annotations":     map[string]any{metav1.InitialEventsAnnotationKey: "true"},
		},
	})
	c.watches[stream] = true
	r := response(req, http.StatusOK, "application/json", nil)
	r.Body, r.ContentLength = stream, -1
	return r, nil
}

func (s *watchStream) send(kind string, object map[string]any) {
	raw, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		panic(err)
	}
	s.events <- raw
}

func (s *watchStream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		select {
		case s.rest = <-s.events:
		case <-s.done:
			return 0, io.EOF
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *watchStream) Close() error {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	delete(s.cluster.watches, s)
	return nil
}

// tell sends what a change means to each watch: an object that loses its label
// is deleted to one that asks for the label.
func (c *cluster) tell(t target, old, next, shown *unstructured.Unstructured) {
	if c.muted {
		c.held = append(c.held, func() { c.tell(t, old, next, shown) })
		return
	}
	for stream := range c.watches {
		if stream.target.kind.gvk.GroupKind() != t.kind.gvk.GroupKind() {
			continue
		}
		matches := func(u *unstructured.Unstructured) bool {
			return u != nil && stream.selector.Matches(labels.Set(u.GetLabels()))
		}
		switch before, after := matches(old), matches(next); {
		case before && after:
			stream.send("MODIFIED", stream.target.as(shown))
		case after:
			stream.send("ADDED", stream.target.as(shown))
		case before:
			stream.send("DELETED", stream.target.as(shown))
		}
	}
}

// mute holds the watches back, or lets them say all that happened meanwhile.
func (c *cluster) mute(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.muted = on
	for _, tell := range c.held {
		tell()
	}
	c.held = nil
}

// edit changes or makes an object as another writer would, with an update.
func (c *cluster) edit(manager, key string, change func(*unstructured.Unstructured)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.targetOf(key)
	object := blank(t.kind.gvk)
	object.SetNamespace(t.namespace)
	object.SetName(t.name)
	if old := c.objects[key]; old != nil {
		object = old.DeepCopy()
	}
	change(object)
	if _, err := c.put(t, object, manager); err != nil {
		panic(err)
	}
}

// applyAs applies an object as another field manager.
func (c *cluster) applyAs(manager, key string, force bool, data map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.targetOf(key)
	object := blank(t.kind.gvk)
	object.SetNamespace(t.namespace)
	object.SetName(t.name)
	object.Object["data"] = data
	raw, err := object.MarshalJSON()
	if err == nil {
		_, err = c.apply(t, key, raw, manager, force)
	}
	if err != nil {
		panic(err)
	}
}

// remove deletes an object as another client would.
func (c *cluster) remove(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.delete(c.targetOf(key), key, []byte("{}")); err != nil {
		panic(err)
	}
}

func (c *cluster) targetOf(key string) target {
	id, err := ParseKey(key)
	if err != nil {
		panic(err)
	}
	i := slices.IndexFunc(c.kinds, func(k servedKind) bool { return k.gvk.GroupKind() == id.GroupKind() })
	return target{c.kinds[i], id.Namespace, id.Name}
}

// get gives a copy of an object, or nil.
func (c *cluster) get(key string) *unstructured.Unstructured {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects[key].DeepCopy()
}

// take gives the writes since the last call, without those of the inventory.
func (c *cluster) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	writes := slices.DeleteFunc(c.writes, func(w string) bool { return strings.Contains(w, "fleetling-system/configmaps") })
	c.writes, c.reads = nil, nil
	return writes
}
