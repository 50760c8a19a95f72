package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetling/fleetling/agent/desired"
	"github.com/fleetling/fleetling/apply"
)

// content is one add-on at one revision: what can be rolled out, and what is
// kept of it in the snapshot.
type content struct {
	Name      string        `json:"name"`
	Path      string        `json:"path"`
	Revision  string        `json:"revision"`
	Digest    string        `json:"digest"`
	DependsOn []string      `json:"dependsOn,omitempty"`
	Timeout   time.Duration `json:"timeout"`
	// Objects are filled for the snapshot only.
	Objects []storedObject `json:"objects,omitempty"`

	objects  []apply.Object
	failures []apply.Failure
}

type storedObject struct {
	File string          `json:"file"`
	Body json.RawMessage `json:"body"`
}

// newContent takes a rendered add-on over the edge of apply.
func newContent(revision string, addOn desired.AddOn) content {
	manifests := make([]apply.Manifest, 0, len(addOn.Objects))
	for _, o := range addOn.Objects {
		manifests = append(manifests, apply.Manifest{Unstructured: o.Unstructured, File: o.File})
	}
	c := content{
		Name: addOn.Name, Path: addOn.Path, Revision: revision, Digest: addOn.Digest,
		DependsOn: addOn.DependsOn, Timeout: addOn.Timeout,
	}
	c.objects, c.failures = apply.Decode(addOn.Name, manifests)
	return c
}

// is tells whether two contents are the same, wherever they come from.
func (c *content) is(other content) bool { return c != nil && c.Digest == other.Digest }

// holdsAgent tells whether this is the add-on that the agent itself is in.
func (c content) holdsAgent() bool {
	return slices.ContainsFunc(c.objects, func(o apply.Object) bool {
		return apply.ID{Group: o.GVK.Group, Kind: o.GVK.Kind, Namespace: o.Namespace, Name: o.Name}.IsAgent()
	})
}

// stored is the content as the snapshot keeps it.
func (c content) stored() content {
	for _, o := range c.objects {
		c.Objects = append(c.Objects, storedObject{File: o.File, Body: o.Body})
	}
	c.objects, c.failures = nil, nil
	return c
}

// restored is the content as it was before stored.
func (c content) restored() (content, error) {
	manifests := make([]apply.Manifest, 0, len(c.Objects))
	for _, s := range c.Objects {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(s.Body); err != nil {
			return content{}, fmt.Errorf("add-on %s: %s: %w", c.Name, s.File, err)
		}
		manifests = append(manifests, apply.Manifest{Unstructured: u, File: s.File})
	}
	c.Objects = nil
	c.objects, c.failures = apply.Decode(c.Name, manifests)
	return c, nil
}
