package capi

import (
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetling/fleetling/sources"
)

const (
	// minValueBytes: Cluster API peeks at that many, and fails at fewer.
	minValueBytes = 32
	// maxSourceBytes leaves room below etcd's limit for the object's own fields.
	maxSourceBytes = 900 << 10
)

// sending is one ClusterResourceSet and what it sends.
type sending struct {
	*linter
	set      Object
	strategy string
	// selector is the cluster's name that it selects by, or "".
	selector string
	// defined are the kinds of the CustomResourceDefinitions that it sends.
	defined map[[2]string]bool
}

// inside is an object in a source.
type inside struct {
	Object
	source Object
	place  string
}

// sources reads all of them first: a custom resource may stand before the
// definition of its kind.
func (s *sending) sources(all []Object) {
	var found []inside
	for _, source := range all {
		found = append(found, s.source(source)...)
	}
	s.defined = map[[2]string]bool{}
	for _, o := range found {
		if o.is("apiextensions.k8s.io", "CustomResourceDefinition") {
			group, _, _ := unstructured.NestedString(o.Object.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object.Object, "spec", "names", "kind")
			s.defined[[2]string{group, kind}] = true
		}
	}
	for _, o := range found {
		s.sent(o)
	}
}

// source looks at a ConfigMap or Secret as a package and unpacks it.
func (s *sending) source(source Object) []inside {
	if source.GetKind() == "Secret" && source.Object["type"] != secretType {
		s.add(source, "", "type %v is refused by Cluster API: write %s", source.Object["type"], secretType)
	}
	if binary, ok := source.Object["binaryData"]; ok && binary != nil {
		s.add(source, "", "binaryData is not read: write it under data")
	}
	values := s.values(source)
	size := 0
	var found []inside
	for _, key := range slices.Sorted(maps.Keys(values)) {
		size += len(values[key])
		s.key(source, key, values)
		found = append(found, s.unpack(source, key, values[key])...)
	}
	if len(values) == 0 {
		s.add(source, "", "it holds nothing: Cluster API would send nothing and report success")
	}
	if size >= maxSourceBytes {
		s.add(source, "", "%d bytes: keep it below %d, or split it into several", size, maxSourceBytes)
	}
	return found
}

func (s *sending) key(source Object, key string, values map[string]string) {
	if strings.HasPrefix(strings.ToLower(key), "readme") {
		s.add(source, " key "+key, "every key is applied: take this one away")
	}
	if size := len(values[key]); size < minValueBytes {
		s.add(source, " key "+key, "%d bytes: below %d Cluster API fails on the whole source with EOF; take the key away", size, minValueBytes)
	}
	if len(values) > 1 && !regexp.MustCompile(`^[0-9]{2}-`).MatchString(key) {
		s.add(source, " key "+key, "keys are applied in alphabetical order: begin them with 00-, 10- ..., or make one of them")
	}
}

// values gives what Cluster API reads of a source, decoded.
func (s *sending) values(source Object) map[string]string {
	values := map[string]string{}
	for _, field := range []string{"data", "stringData"} {
		held, _, err := unstructured.NestedStringMap(source.Object, field)
		if err != nil {
			s.add(source, "", "%s must map keys to text", field)
		}
		isSecret := source.GetKind() == "Secret"
		if field == "stringData" && !isSecret {
			continue
		}
		for key, value := range held {
			if decoded, err := base64.StdEncoding.DecodeString(value); field == "data" && isSecret {
				if err != nil {
					s.add(source, " key "+key, "the value is not base64")
					continue
				}
				value = string(decoded)
			}
			values[key] = value
		}
	}
	return values
}

// unpack never shows what a Secret holds: of a text that does not parse only its
// place is told.
func (s *sending) unpack(source Object, key, text string) []inside {
	objects, err := Read("", []byte(text))
	if err != nil {
		why := err.Error()
		if source.GetKind() == "Secret" {
			why = string(sources.ReasonOf(err))
		}
		s.add(source, " key "+key, "does not hold objects: %.300s", why)
		return nil
	}
	if len(objects) == 0 && len(text) >= minValueBytes {
		s.add(source, " key "+key, "holds no object")
	}
	var found []inside
	for _, o := range objects {
		found = append(found, inside{o, source, fmt.Sprintf(" key %s: %s", key, o)})
	}
	return found
}
