package fleet

import (
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetling/fleetling/sources"
)

const (
	maxIdentityBytes = 64 << 10
	maxNameLength    = 32
	maxLabels        = 64
)

// Identity is what a cluster is told at birth.
type Identity struct {
	// Name is one DNS label of at most 32 characters.
	Name string
	// ClusterSet is one DNS label.
	ClusterSet string
	// Labels are valid Kubernetes labels; nil when there are none.
	Labels map[string]string
}

// ParseIdentity reads a document of kind Identity, strictly. file is named in
// errors. What can't be used is an error, never an identity without labels.
func ParseIdentity(file string, data []byte) (Identity, error) {
	found := &problems{}
	d := decoder{place: place{file: file}, problems: found, reason: sources.IdentityMissing}
	if len(data) > maxIdentityBytes {
		d.report(0, sources.LimitExceeded, "%d bytes: an identity has at most %d", len(data), maxIdentityBytes)
		return Identity{}, found.err()
	}
	doc, ok := d.one(data)
	if !ok {
		return Identity{}, found.err()
	}
	var identity Identity
	var version, kind Text
	d.object(doc, fields{
		"apiVersion": {required: true, read: d.into(&version)},
		"kind":       {required: true, read: d.into(&kind)},
		"name":       {required: true, read: d.dnsLabel(&identity.Name, maxNameLength)},
		"clusterSet": {required: true, read: d.dnsLabel(&identity.ClusterSet, validation.DNS1123LabelMaxLength)},
		"labels":     {read: func(at item) { identity.Labels = decodeLabels(d, at) }},
	})
	d.version(version, kind, "Identity")
	if err := found.err(); err != nil {
		return Identity{}, err
	}
	return identity, nil
}

func decodeLabels(d decoder, at item) map[string]string {
	var labels map[string]string
	d.each(at, func(key string, value item) {
		text, ok := d.text(value, sources.InvalidLabelValue)
		switch {
		case !ok:
		case len(validation.IsQualifiedName(key)) > 0:
			d.report(value.line, d.reason, "%.80q is not a label key", key)
		case len(validation.IsValidLabelValue(text.Value)) > 0:
			d.report(value.line, sources.InvalidLabelValue, "label %.80q: %.80q is not a label value", key, text.Value)
		case len(labels) == maxLabels:
			d.report(value.line, sources.LimitExceeded, "label %.80q is one too many: an identity has at most %d", key, maxLabels)
		default:
			if labels == nil {
				labels = map[string]string{}
			}
			labels[key] = text.Value
		}
	})
	return labels
}
