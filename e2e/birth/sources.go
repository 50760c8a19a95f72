package birth

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Objects reads the YAML documents of a text; empty ones are left out.
func Objects(text []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4<<10)
	var objects []*unstructured.Unstructured
	for {
		var content map[string]any
		err := decoder.Decode(&content)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(content) > 0 {
			objects = append(objects, &unstructured.Unstructured{Object: content})
		}
	}
}

// hook is where the manager's webhooks answer: a URL without a path, and its
// authority in PEM.
type hook struct {
	url       string
	authority []byte
}

func (h hook) client(path string) map[string]any {
	return map[string]any{"url": h.url + path, "caBundle": base64.StdEncoding.EncodeToString(h.authority)}
}

// definitions gives the CRDs of Cluster API's folder config, with the labels and
// the conversion that its kustomization gives them.
func (h hook) definitions(config string) ([]*unstructured.Unstructured, error) {
	objects, err := readAll(filepath.Join(config, "crd", "bases", "*.yaml"))
	if err != nil {
		return nil, err
	}
	labels, err := contracts(config)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		o.SetLabels(labels)
		err = errors.Join(err, unstructured.SetNestedMap(o.Object, map[string]any{
			"strategy": "Webhook",
			"webhook":  map[string]any{"conversionReviewVersions": []any{"v1"}, "clientConfig": h.client("/convert")},
		}, "spec", "conversion"))
	}
	return objects, err
}

// contracts gives the labels that say which contract of Cluster API the versions
// of a provider's CRDs keep; the core's have none.
func contracts(config string) (map[string]string, error) {
	kustomization, err := readAll(filepath.Join(config, "crd", "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	sets, _, err := unstructured.NestedSlice(kustomization[0].Object, "labels")
	for _, set := range sets {
		content, _ := set.(map[string]any)
		pairs, _, wrong := unstructured.NestedStringMap(content, "pairs")
		err = errors.Join(err, wrong)
		maps.Copy(labels, pairs)
	}
	return labels, err
}

// configurations gives the webhook configurations of Cluster API's folder
// config, reached by URL.
func (h hook) configurations(config string) ([]*unstructured.Unstructured, error) {
	objects, err := readAll(filepath.Join(config, "webhook", "manifests.yaml"))
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			return nil, err
		}
		for _, each := range hooks {
			content, _ := each.(map[string]any)
			path, _, err := unstructured.NestedString(content, "clientConfig", "service", "path")
			if err != nil {
				return nil, err
			}
			content["clientConfig"] = h.client(path)
		}
		if err := unstructured.SetNestedSlice(o.Object, hooks, "webhooks"); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func readAll(pattern string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, err := Objects(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, objects...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no objects there", pattern)
	}
	return all, nil
}
