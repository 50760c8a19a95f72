package fleet

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/fleetling/fleetling/sources"
)

const (
	memberKeysAnnotation    = "fleetling.dev/member-keys"
	endpointCIDRsAnnotation = "fleetling.dev/endpoint-cidrs"
	maxCIDRs                = 64
)

// Cluster is a cluster entry: what a Cluster API Cluster object in the
// repository says of one cluster.
type Cluster struct {
	// Name is metadata.name; the namespace is ignored.
	Name string
	File string
	Line int
	// Labels are those of the entry that fleetling.yaml declares.
	Labels map[string]string
	// PodCIDRs are spec.clusterNetwork.pods.cidrBlocks, masked, in file order.
	PodCIDRs []netip.Prefix
	// EndpointCIDRs are those of annotation fleetling.dev/endpoint-cidrs,
	// masked: further ranges that endpoints of this cluster may lie in.
	EndpointCIDRs []netip.Prefix
	// MemberKeys are none, one or two lines "ssh-ed25519 AAAA...", without
	// comment, of annotation fleetling.dev/member-keys.
	MemberKeys []string
	// Problem is what is wrong with the entry; it holds this cluster only. A
	// field above that could not be read is empty. Nil when all is well.
	Problem error

	labelLines map[string]int
}

// Ranges are all that endpoints of this cluster may lie in.
func (c Cluster) Ranges() []netip.Prefix { return slices.Concat(c.PodCIDRs, c.EndpointCIDRs) }

func (c Cluster) place() place {
	return place{file: c.File, line: c.Line, object: "Cluster/" + c.Name}
}

// decodeBody reads what holds this cluster only. The object is somebody else's:
// keys that are not ours are theirs.
func (c *Cluster) decodeBody(doc item, rules map[string]LabelRule) {
	found := &problems{}
	d := decoder{place: c.place(), problems: found, reason: sources.InvalidFleetFile, lenient: true}
	if len(c.Name) > maxNameLength || !isDNSLabel(c.Name) {
		d.report(c.Line, d.reason, "metadata.name must be one DNS label of at most %d characters: no identity can have this one", maxNameLength)
	}
	c.Labels, c.labelLines = map[string]string{}, map[string]int{}
	sound := true
	inside := func(known fields) field { return field{read: func(at item) { d.object(at, known) }} }
	d.object(doc, fields{
		"metadata": inside(fields{
			"labels": {read: func(at item) { sound = c.decodeLabels(d, at, rules) }},
			"annotations": inside(fields{
				memberKeysAnnotation:    {read: func(at item) { c.MemberKeys = decodeMemberKeys(d, at) }},
				endpointCIDRsAnnotation: {read: func(at item) { c.EndpointCIDRs = decodeEndpointCIDRs(d, at) }},
			}),
		}),
		"spec": inside(fields{"clusterNetwork": inside(fields{"pods": inside(fields{
			"cidrBlocks": {read: func(at item) { c.PodCIDRs = parseCIDRs(d, d.texts(at, maxCIDRs, d.reason)) }},
		})})}),
	})
	if sound {
		checkLabels(rules, c.Labels, "this entry", c.labelPlace, found)
	}
	c.Problem = found.err()
}

func (c *Cluster) labelPlace(key string) place {
	if line, ok := c.labelLines[key]; ok {
		return c.place().on(line)
	}
	return c.place()
}

// decodeLabels gives false where it had to leave one out: then nobody can tell
// whether one is missing.
func (c *Cluster) decodeLabels(d decoder, at item, rules map[string]LabelRule) bool {
	before := len(d.problems.kept)
	d.each(at, func(key string, value item) {
		if _, declared := rules[key]; !declared {
			return
		}
		if text, ok := d.text(value, sources.InvalidLabelValue); ok {
			c.Labels[key], c.labelLines[key] = text.Value, text.Line
		}
	})
	return len(d.problems.kept) == before
}

func decodeEndpointCIDRs(d decoder, at item) []netip.Prefix {
	text, ok := d.text(at, d.reason)
	if !ok {
		return nil
	}
	var ranges []Text
	for _, word := range strings.FieldsFunc(text.Value, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		ranges = append(ranges, Text{word, at.line})
	}
	if len(ranges) == 0 || len(ranges) > maxCIDRs {
		d.report(at.line, d.reason, "%s must hold 1 to %d ranges, with commas between", endpointCIDRsAnnotation, maxCIDRs)
		return nil
	}
	return parseCIDRs(d, ranges)
}

// parseCIDRs gives no range at all when one is wrong.
func parseCIDRs(d decoder, ranges []Text) []netip.Prefix {
	var parsed []netip.Prefix
	for _, text := range ranges {
		prefix, err := netip.ParsePrefix(text.Value)
		if err != nil || prefix.Addr().Is4In6() || prefix.Bits() == 0 {
			d.report(text.Line, d.reason, "%.80q must be an address range such as 10.1.0.0/16, and not all addresses", text.Value)
			continue
		}
		parsed = append(parsed, prefix.Masked())
	}
	if len(parsed) < len(ranges) {
		return nil
	}
	return parsed
}
