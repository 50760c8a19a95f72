package render

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/resource"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// item is one object on its way: its node, and where it comes from.
type item struct {
	node *yaml.Node
	place
}

// manifests gives the objects of one file as kustomize reads them: aliases
// written out, lists flattened.
func (p *problems) manifests(name string, data []byte) []item {
	var items []item
	docs, _ := p.documents(name, data)
	for _, doc := range docs {
		at := place{name, doc.line + doc.node.Line}
		if doc.node.Kind != yaml.MappingNode {
			p.add(at, "not a Kubernetes object: a document here is a mapping with apiVersion, kind and metadata")
			continue
		}
		root, err := doc.expand()
		if err != nil {
			p.add(at, "%w", err)
			continue
		}
		flat, err := flatten(root, doc.alone)
		if err != nil {
			p.add(at, "%w", err)
			continue
		}
		for _, node := range flat {
			if it := (item{node, place{name, doc.line + node.Line}}); p.identify(it) {
				items = append(items, it)
			}
		}
	}
	return items
}

// expand writes out what the aliases stand for.
func (d document) expand() (*yaml.Node, error) {
	if !d.aliases {
		return d.node, nil
	}
	root := kyaml.NewRNode(d.node)
	if err := root.DeAnchor(); err != nil {
		return nil, err
	}
	return root.YNode(), nil
}

// flatten takes lists apart: any kind that ends in List and has items, which a
// custom resource may not have. alone says that the file holds one document.
func flatten(n *yaml.Node, alone bool) ([]*yaml.Node, error) {
	var flat []*yaml.Node
	for queue := []*yaml.Node{n}; len(queue) > 0; queue = queue[1:] {
		list := queue[0]
		kind, items := text(list, "kind"), field(list, "items")
		if !strings.HasSuffix(kind, "List") || items == nil {
			flat = append(flat, list)
			continue
		}
		if items.ShortTag() == "!!null" {
			continue
		}
		if items.Kind != yaml.SequenceNode {
			return nil, errors.New("the items of a List are a list of objects")
		}
		// kustomize hands on the nodes of the one List of a file, and takes
		// those of any other through JSON.
		asJSON := !alone || kind != "List" && kind != "ResourceList" || list != n
		for _, child := range items.Content {
			if child.Kind != yaml.MappingNode {
				return nil, errors.New("the items of a List are objects")
			}
			if asJSON {
				jsonAnnotations(child)
			}
			queue = append(queue, child)
		}
	}
	return flat, nil
}

// jsonAnnotations writes what stands in an annotation unquoted as JSON does.
func jsonAnnotations(n *yaml.Node) {
	each(metadata(n, "annotations"), func(v *yaml.Node) {
		if decoded, err := scalar(v); err == nil && v.Kind == yaml.ScalarNode && v.ShortTag() != "!!str" {
			if text, ok := decoded.(string); ok {
				setText(v, text)
			} else if text, err := json.Marshal(decoded); err == nil {
				setText(v, string(text))
			}
		}
	})
}

// settle does to an object what a build by kustomize does to every object, also
// where nothing is asked of it: annotations become text, empty ones go, its own
// notes go.
func settle(n *yaml.Node) {
	annotations := metadata(n, "annotations")
	if annotations == nil {
		return
	}
	each(annotations, func(v *yaml.Node) { setText(v, v.Value) })
	drop(annotations, slices.Concat(resource.BuildAnnotations, []string{originAnnotation, transformationsAnnotation}))
	if len(annotations.Content) == 0 {
		drop(field(n, "metadata"), []string{"annotations"})
	}
}

const (
	originAnnotation          = "config.kubernetes.io/origin"
	transformationsAnnotation = "alpha.config.kubernetes.io/transformations"
	localAnnotation           = "config.kubernetes.io/local-config"
	internalAnnotation        = "internal.config.kubernetes.io/"
)

// metadata gives a field of the metadata of an object, and nil without it.
func metadata(n *yaml.Node, name string) *yaml.Node {
	if meta := field(n, "metadata"); meta != nil {
		return field(meta, name)
	}
	return nil
}

// text gives a field that holds text.
func text(n *yaml.Node, name string) string {
	if f := field(n, name); f != nil && f.Kind == yaml.ScalarNode && f.ShortTag() == "!!str" {
		return f.Value
	}
	return ""
}

func each(mapping *yaml.Node, do func(value *yaml.Node)) {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return
	}
	for i := 1; i < len(mapping.Content); i += 2 {
		do(mapping.Content[i])
	}
}

func setText(n *yaml.Node, text string) {
	n.Kind, n.Tag, n.Value, n.Style = yaml.ScalarNode, "!!str", text, 0
}

func drop(mapping *yaml.Node, names []string) {
	kept := mapping.Content[:0]
	for i := 0; i < len(mapping.Content)-1; i += 2 {
		if !slices.Contains(names, mapping.Content[i].Value) {
			kept = append(kept, mapping.Content[i], mapping.Content[i+1])
		}
	}
	mapping.Content = kept
}
