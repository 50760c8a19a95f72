package apply

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AddOnLabel stands on every object that we apply and names its add-on. It
// selects what we watch; the inventory, not the label, decides ownership.
const AddOnLabel = "fleetling.dev/addon"

// PruneAnnotation on an object says what happens when it is not wanted any
// more: PruneConfirm holds it, PruneDisabled lets go of it without deleting.
const (
	PruneAnnotation = "fleetling.dev/prune"
	PruneConfirm    = "confirm"
	PruneDisabled   = "disabled"
)

// Manifest is one rendered object and the file it comes from.
type Manifest struct {
	*unstructured.Unstructured
	File string
}

// Object is a manifest that passed the edge: what will be sent, and what
// planning needs to know of it. It is not changed after Decode.
type Object struct {
	// GVK, Namespace and Name are as the manifest says. Whether the namespace
	// counts is known once the kind is served: see Kinds.Identify.
	GVK             schema.GroupVersionKind
	Namespace, Name string
	// File is where the object comes from.
	File string
	// Body is the JSON that is applied, and Digest its SHA-256 in hexadecimal.
	Body   []byte
	Digest string
	// Defines is set for a CustomResourceDefinition: the kind it brings.
	Defines *Definition
	// Params is set for a ValidatingAdmissionPolicy or a
	// MutatingAdmissionPolicy: the kind of its parameters.
	Params schema.GroupKind
}

// Definition is what a CustomResourceDefinition will serve.
type Definition struct {
	GroupKind  schema.GroupKind
	Namespaced bool
	// Versions are those that are served.
	Versions []string
}

// String is Kind/name or Kind/namespace/name, as in ID.
func (o Object) String() string {
	return ID{Kind: o.GVK.Kind, Namespace: o.Namespace, Name: o.Name}.String()
}

// Decode takes the manifests of one add-on over the edge. A failure is an object
// that is not applied; what is live of it stays as it is.
func Decode(addOn string, manifests []Manifest) (objects []Object, failures []Failure) {
	for _, m := range manifests {
		object, err := decode(addOn, m)
		if err != nil {
			failures = append(failures, Failure{
				ID:     ID{Group: m.GroupVersionKind().Group, Kind: m.GetKind(), Namespace: m.GetNamespace(), Name: m.GetName()},
				File:   m.File,
				Reason: InvalidObject, Message: err.Error(),
			})
			continue
		}
		objects = append(objects, object)
	}
	return objects, failures
}

func decode(addOn string, m Manifest) (Object, error) {
	gvk := m.GroupVersionKind()
	if gvk.Version == "" || gvk.Kind == "" || m.GetName() == "" {
		return Object{}, errors.New("apiVersion, kind or metadata.name is missing, or is not text: quote it")
	}
	if err := checkNames(m.GetNamespace(), m.GetName()); err != nil {
		return Object{}, fmt.Errorf("metadata.%w", err)
	}
	u := m.DeepCopy()
	if err := encodeStringData(u); err != nil {
		return Object{}, err
	}
	if err := setAddOn(u, addOn); err != nil {
		return Object{}, err
	}
	body, err := json.Marshal(u.Object)
	if err != nil {
		return Object{}, fmt.Errorf("encode: %w", err)
	}
	sum := sha256.Sum256(body)
	return Object{
		GVK: gvk, Namespace: u.GetNamespace(), Name: u.GetName(), File: m.File,
		Body: body, Digest: hex.EncodeToString(sum[:]),
		Defines: definition(u), Params: paramKind(u),
	}, nil
}

// setAddOn puts our label on. Labels that can't be read are refused: they would
// be lost.
func setAddOn(u *unstructured.Unstructured, addOn string) error {
	labels := map[string]string{}
	if value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "labels"); value != nil {
		read, _, err := unstructured.NestedStringMap(u.Object, "metadata", "labels")
		if err != nil {
			return errors.New("metadata.labels: values must be strings: quote them")
		}
		labels = read
	}
	labels[AddOnLabel] = addOn
	u.SetLabels(labels)
	return nil
}

// encodeStringData turns a Secret's stringData into data: the server does so on
// write, but keeps no account of it, so that a key which leaves the file would
// stay in the cluster for ever (kubernetes#108008).
func encodeStringData(u *unstructured.Unstructured) error {
	if u.GetAPIVersion() != "v1" || u.GetKind() != "Secret" {
		return nil
	}
	for _, name := range []string{"data", "stringData"} {
		if u.Object[name] == nil { // an empty map, as people write it
			delete(u.Object, name)
		}
	}
	stringData, found, err := unstructured.NestedStringMap(u.Object, "stringData")
	if err != nil {
		return errors.New("stringData: values must be strings: quote them")
	}
	if !found {
		return nil
	}
	for key, value := range stringData {
		encoded := base64.StdEncoding.EncodeToString([]byte(value))
		if err := unstructured.SetNestedField(u.Object, encoded, "data", key); err != nil {
			return errors.New("data: must be a map")
		}
	}
	unstructured.RemoveNestedField(u.Object, "stringData")
	return nil
}

func definition(u *unstructured.Unstructured) *Definition {
	if u.GroupVersionKind().GroupKind().String() != kindDefinition {
		return nil
	}
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(u.Object, "spec", "scope")
	return &Definition{GroupKind: schema.GroupKind{Group: group, Kind: kind}, Namespaced: scope == "Namespaced", Versions: servedVersions(u)}
}

func servedVersions(u *unstructured.Unstructured) []string {
	var names []string
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if name, _ := version["name"].(string); version["served"] == true {
			names = append(names, name)
		}
	}
	return names
}

func paramKind(u *unstructured.Unstructured) schema.GroupKind {
	gk := u.GroupVersionKind().GroupKind()
	if gk.Group != groupAdmission || !strings.HasSuffix(gk.Kind, "AdmissionPolicy") {
		return schema.GroupKind{}
	}
	apiVersion, _, _ := unstructured.NestedString(u.Object, "spec", "paramKind", "apiVersion")
	kind, _, _ := unstructured.NestedString(u.Object, "spec", "paramKind", "kind")
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return schema.GroupKind{}
	}
	return schema.GroupKind{Group: gv.Group, Kind: kind}
}
