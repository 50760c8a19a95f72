package render

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetling/fleetling/sources"
)

// identity is what makes an object one object: two manifests that share it are
// the same object, whatever version they are written in.
type identity struct {
	group, kind, namespace, name string
}

func identityOf(apiVersion, kind, namespace, name string) identity {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		group = ""
	}
	return identity{group, kind, namespace, name}
}

// String gives Kind/namespace/name, or Kind/name.
func (id identity) String() string {
	if id.namespace == "" {
		return fmt.Sprintf("%.100s/%.253s", id.kind, id.name)
	}
	return fmt.Sprintf("%.100s/%.253s/%.253s", id.kind, id.namespace, id.name)
}

// identify says whether a manifest says what it is. What it does not say is
// refused here, where file, line and keys are known.
func (p *problems) identify(it item) bool {
	id := it.identity()
	refuse := func(format string, args ...any) bool {
		e := &sources.Error{Reason: sources.RenderFailed, File: it.file, Line: it.line, Err: fmt.Errorf(format, args...)}
		if id.kind != "" && id.name != "" {
			e.Object = id.String()
		}
		p.put(e)
		return false
	}
	for _, key := range []string{"apiVersion", "kind"} {
		if text(it.node, key) == "" {
			return refuse("no %s; its keys are %s", key, keysOf(it.node))
		}
	}
	meta := field(it.node, "metadata")
	switch {
	case meta == nil || meta.Kind != yaml.MappingNode:
		return refuse("%s has no metadata", id.kind)
	case field(meta, "generateName") != nil:
		return refuse("%s has generateName: every apply would make another object; give it a name", id.kind)
	case id.name == "":
		return refuse("%s has no metadata.name that is text", id.kind)
	}
	return p.annotated(it, refuse)
}

// annotated refuses annotations that kustomize would empty or obey.
func (p *problems) annotated(it item, refuse func(string, ...any) bool) bool {
	annotations := metadata(it.node, "annotations")
	if annotations == nil || annotations.ShortTag() == "!!null" {
		return true
	}
	if annotations.Kind != yaml.MappingNode {
		return refuse("metadata.annotations is no mapping")
	}
	for i := 0; i < len(annotations.Content)-1; i += 2 {
		key, value := annotations.Content[i].Value, annotations.Content[i+1]
		if value.Kind != yaml.ScalarNode {
			return refuse("the annotation %.100q is not text", key)
		}
		if strings.HasPrefix(key, internalAnnotation) {
			return refuse("the annotation %.100q is kustomize's own: remove it", key)
		}
	}
	return true
}

func (it item) identity() identity {
	meta := field(it.node, "metadata")
	if meta == nil {
		meta = &yaml.Node{}
	}
	return identityOf(text(it.node, "apiVersion"), text(it.node, "kind"), text(meta, "namespace"), text(meta, "name"))
}

// keysOf names the first keys of a manifest: a typo is among them.
func keysOf(n *yaml.Node) string {
	var names []string
	for i := 0; i < len(n.Content)-1 && len(names) < 6; i += 2 {
		names = append(names, fmt.Sprintf("%.40q", n.Content[i].Value))
	}
	return strings.Join(names, ", ")
}
