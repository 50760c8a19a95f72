package render

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetling/fleetling/sources"
)

// Object is one rendered object, and the file of the fleet repository that it
// comes from: its manifest, or the kustomization file that generates it.
type Object struct {
	*unstructured.Unstructured
	File string
}

// serverOwned are the fields of metadata that only a server writes: an apply
// that sends them is refused, or fights for ever.
func serverOwned() []string {
	return []string{
		"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
		"managedFields", "resourceVersion", "selfLink", "uid",
	}
}

// finish turns what was rendered into objects that can be applied.
type finish struct {
	problems *problems
	variable *variables
	files    map[identity]string
	result   Result
}

func (f *finish) add(it item) {
	settle(it.node)
	made, err := value(it.node)
	content, ok := made.(map[string]any)
	if err == nil && !ok {
		err = errors.New("not an object")
	}
	if err != nil {
		f.refuse(it, it.identity(), sources.RenderFailed, "%w", err)
		return
	}
	if err := f.variable.replace(content); err != nil {
		f.refuse(it, it.identity(), sources.LimitExceeded, "%w", err)
		return
	}
	if isLocal(content) {
		return
	}
	id, ok := f.check(it, content)
	if !ok {
		return
	}
	if first, twice := f.files[id]; twice {
		f.refuse(it, id, sources.RenderFailed, "%w", sameObject(first, it.file))
		return
	}
	f.files[id] = it.file
	f.strip(it, id, content)
	f.result.Objects = append(f.result.Objects, Object{&unstructured.Unstructured{Object: content}, it.file})
}

func (f *finish) refuse(it item, id identity, reason sources.Reason, format string, args ...any) {
	e := &sources.Error{Reason: reason, File: it.file, Line: it.line, Err: fmt.Errorf(format, args...)}
	if id.kind != "" && id.name != "" {
		e.Object = id.String()
	}
	f.problems.put(e)
}

// check asks of an object what holds for every kind.
func (f *finish) check(it item, content map[string]any) (identity, bool) {
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	meta, _ := content["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	namespace, isText := meta["namespace"].(string)
	id := identityOf(apiVersion, kind, namespace, name)
	refuse := func(format string, args ...any) (identity, bool) {
		f.refuse(it, id, sources.RenderFailed, format, args...)
		return id, false
	}
	switch {
	case apiVersion == "":
		return refuse("rendered without apiVersion")
	case kind == "":
		return refuse("rendered without kind")
	case meta["generateName"] != nil:
		return refuse("rendered with generateName: every apply would make another object; give it a name")
	case name == "":
		return refuse("%s rendered without metadata.name", kind)
	case meta["namespace"] != nil && !isText:
		return refuse("metadata.namespace is not text")
	case meta["ownerReferences"] != nil:
		return refuse("metadata.ownerReferences names objects of one cluster by their UID, and the garbage collector would delete this one without them: remove it")
	}
	for _, name := range []string{"labels", "annotations"} {
		if !texts(meta[name]) {
			return refuse("metadata.%s holds a value that is not text: quote it", name)
		}
	}
	return id, true
}

func texts(v any) bool {
	fields, ok := v.(map[string]any)
	for _, v := range fields {
		if _, isText := v.(string); !isText {
			return false
		}
	}
	return ok || v == nil
}

// isLocal says that an object is meant for tools and never for a cluster.
func isLocal(content map[string]any) bool {
	meta, _ := content["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	value, present := annotations[localAnnotation]
	return present && value != "false"
}

func (f *finish) strip(it item, id identity, content map[string]any) {
	meta := content["metadata"].(map[string]any)
	for _, name := range serverOwned() {
		value, present := meta[name]
		if !present {
			continue
		}
		delete(meta, name)
		if value != nil {
			f.result.Warnings = append(f.result.Warnings, &sources.Error{
				AddOn: f.problems.addOn, File: it.file, Line: it.line, Object: id.String(),
				Err: fmt.Errorf("metadata.%s belongs to the server and was left out: remove it", name),
			})
		}
	}
}

// sort puts objects and warnings into an order that depends on nothing else.
func (r *Result) sort() {
	slices.SortFunc(r.Objects, func(a, b Object) int {
		return cmp.Or(
			cmp.Compare(a.GroupVersionKind().Group, b.GroupVersionKind().Group), cmp.Compare(a.GetKind(), b.GetKind()),
			cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()),
		)
	})
	slices.SortFunc(r.Warnings, byPlace)
	r.Warnings = r.Warnings[:min(len(r.Warnings), maxProblems)]
}
