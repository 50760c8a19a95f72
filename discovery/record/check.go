package record

import (
	"encoding/hex"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetling/fleetling/discovery"
)

// check refuses what is not sound. r is canonical.
func (r Record) check() error {
	if err := checkHead(r.Schema, r.ClusterSet, r.Cluster, r.Sequence, r.Issued, r.LeaseSeconds); err != nil {
		return err
	}
	if !isLabel(r.ClusterUID) {
		return malformed("clusterUID %.80q is not the UID of a namespace", r.ClusterUID)
	}
	if len(r.Exports) > MaxExports {
		return tooLarge("exports", len(r.Exports), MaxExports)
	}
	if r.Withdrawn && len(r.Exports) > 0 {
		return malformed("it is withdrawn and has exports")
	}
	for i, export := range r.Exports {
		if err := export.check(); err != nil {
			return err
		}
		if i > 0 && compareExports(r.Exports[i-1], export) == 0 {
			return malformed("export %s/%s stands twice", export.Namespace, export.Name)
		}
	}
	return nil
}

func checkHead(schema int, clusterSet, cluster string, sequence uint64, issued time.Time, lease int) error {
	switch {
	case schema != Schema:
		return malformed("schema is %d, not %d", schema, Schema)
	case !isLabel(clusterSet):
		return malformed("clusterSet %.80q is not a DNS label", clusterSet)
	case !isLabel(cluster):
		return malformed("cluster %.80q is not a DNS label", cluster)
	case sequence == 0 || sequence > MaxSequence:
		return malformed("sequence %d is not from 1 to %d", sequence, uint64(MaxSequence))
	case !isTime(issued):
		return malformed("issued is not a time from 1970 to 9999")
	case lease < 1 || lease > maxLease:
		return malformed("leaseSeconds %d is not from 1 to %d", lease, maxLease)
	}
	return nil
}

func (e Export) check() error {
	if !isLabel(e.Namespace) || !isLabel(e.Name) {
		return malformed("export %.80q/%.80q is not named by two DNS labels", e.Namespace, e.Name)
	}
	at := "export " + e.Namespace + "/" + e.Name + ": "
	if !isTime(e.Created) {
		return malformed("%screated is not a time from 1970 to 9999", at)
	}
	if err := e.checkWords(at); err != nil {
		return err
	}
	if err := e.checkPorts(at); err != nil {
		return err
	}
	if err := e.checkPairs(at); err != nil {
		return err
	}
	if len(e.Parts) > MaxParts {
		return tooLarge("parts of "+e.Namespace+"/"+e.Name, len(e.Parts), MaxParts)
	}
	if i := slices.IndexFunc(e.Parts, func(d discovery.Digest) bool { return !isDigest(d) }); i >= 0 {
		return malformed("%spart %.80q is not a digest", at, string(e.Parts[i]))
	}
	return nil
}

// checkWords refuses values that this version can't apply.
func (e Export) checkWords(at string) error {
	for _, word := range []struct {
		field, value string
		known        []string
	}{
		{"type", e.Type, []string{"ClusterSetIP", "Headless"}},
		{"sessionAffinity", e.SessionAffinity, []string{"", "None", "ClientIP"}},
		{"internalTrafficPolicy", e.InternalTrafficPolicy, []string{"", "Cluster", "Local"}},
		{"trafficDistribution", e.TrafficDistribution, []string{"", "PreferClose", "PreferSameZone", "PreferSameNode"}},
	} {
		if !slices.Contains(word.known, word.value) {
			return malformed("%s%s %.80q is not known", at, word.field, word.value)
		}
	}
	// A day is Kubernetes' limit.
	if e.AffinityTimeoutSeconds < 0 || e.AffinityTimeoutSeconds > 86400 ||
		(e.AffinityTimeoutSeconds > 0 && e.SessionAffinity != "ClientIP") {
		return malformed("%saffinityTimeoutSeconds %d is not from 1 to 86400 with ClientIP", at, e.AffinityTimeoutSeconds)
	}
	families := slices.Compact(slices.Sorted(slices.Values(e.IPFamilies)))
	unknown := slices.ContainsFunc(families, func(f string) bool { return !isFamily(f) })
	if unknown || len(families) != len(e.IPFamilies) {
		return malformed("%sipFamilies are not IPv4 and IPv6, each once", at)
	}
	return nil
}

func (e Export) checkPorts(at string) error {
	if len(e.Ports) > MaxPorts {
		return tooLarge("ports of "+e.Namespace+"/"+e.Name, len(e.Ports), MaxPorts)
	}
	names := map[string]bool{}
	numbers := map[Port]bool{}
	for _, port := range e.Ports {
		if !soundPort(port.Name, port.Protocol, port.AppProtocol, port.Port) {
			return malformed("%sport %.80q is not sound", at, port.Name)
		}
		number := Port{Protocol: port.Protocol, Port: port.Port}
		if names[port.Name] || numbers[number] {
			return malformed("%sport %q (%s %d) stands twice", at, port.Name, port.Protocol, port.Port)
		}
		names[port.Name], numbers[number] = true, true
	}
	return nil
}

func soundPort(name, protocol, appProtocol string, number int32) bool {
	return (name == "" || isLabel(name)) &&
		slices.Contains([]string{"TCP", "UDP", "SCTP"}, protocol) &&
		(appProtocol == "" || len(content.IsLabelKey(appProtocol)) == 0) &&
		number >= 1 && number <= 65535
}

func (e Export) checkPairs(at string) error {
	size := 0
	for _, pairs := range []map[string]string{e.Labels, e.Annotations} {
		if len(pairs) > maxPairs {
			return tooLarge("labels or annotations of "+e.Namespace+"/"+e.Name, len(pairs), maxPairs)
		}
		// Sorted: of several errors always the same one is told.
		for _, key := range slices.Sorted(maps.Keys(pairs)) {
			size += len(key) + len(pairs[key])
			// Kubernetes takes upper case in the prefix of an annotation.
			if len(content.IsLabelKey(strings.ToLower(key))) > 0 || !utf8.ValidString(pairs[key]) {
				return malformed("%s%.80q is not a label or annotation", at, key)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.Labels)) {
		if len(content.IsLabelKey(key)) > 0 || !isLabelValue(e.Labels[key]) {
			return malformed("%slabel %.80q is not one, or its value is not", at, key)
		}
	}
	if size > maxPairBytes {
		return tooLarge("bytes of labels and annotations of "+e.Namespace+"/"+e.Name, size, maxPairBytes)
	}
	return nil
}

func (s Slice) check() error {
	switch {
	case !isFamily(s.AddressType):
		return malformed("addressType %.80q is not IPv4 or IPv6", s.AddressType)
	case len(s.Ports) > MaxPorts:
		return tooLarge("ports", len(s.Ports), MaxPorts)
	case len(s.Endpoints) > MaxEndpoints:
		return tooLarge("endpoints", len(s.Endpoints), MaxEndpoints)
	}
	names := map[string]bool{}
	for _, port := range s.Ports {
		// Several Service ports may have one target port: only names are unique.
		if !soundPort(port.Name, port.Protocol, port.AppProtocol, port.Port) || names[port.Name] {
			return malformed("port %.80q is not sound, or stands twice", port.Name)
		}
		names[port.Name] = true
	}
	hostnames := map[string]bool{}
	for _, endpoint := range s.Endpoints {
		if err := endpoint.check(s.AddressType); err != nil {
			return err
		}
		if endpoint.Hostname != "" && hostnames[endpoint.Hostname] {
			return malformed("hostname %q stands twice", endpoint.Hostname)
		}
		hostnames[endpoint.Hostname] = true
	}
	return nil
}

func (e Endpoint) check(family string) error {
	addr, err := netip.ParseAddr(e.Address)
	sound := err == nil && addr.Zone() == "" && !addr.Is4In6() && addr.String() == e.Address && addr.Is4() == (family == "IPv4")
	switch {
	case !sound:
		return malformed("%.80q is not the canonical text of an %s address", e.Address, family)
	case e.Hostname != "" && !isLabel(e.Hostname):
		return malformed("endpoint %s: hostname %.80q is not a DNS label", e.Address, e.Hostname)
	case !isLabelValue(e.Zone):
		return malformed("endpoint %s: zone %.80q is not a label's value", e.Address, e.Zone)
	}
	return nil
}

func (s Status) check() error {
	if err := checkHead(s.Schema, s.ClusterSet, s.Cluster, s.Sequence, s.Issued, s.LeaseSeconds); err != nil {
		return err
	}
	if len(s.Failing) > maxFailing {
		return tooLarge("failing add-ons", len(s.Failing), maxFailing)
	}
	if s.AddOns < 0 || s.Exports < 0 {
		return malformed("a count is negative")
	}
	for _, text := range append([]string{s.Revision, s.Reason, s.Message, s.Version}, s.Failing...) {
		if len(text) > maxText {
			return tooLarge("bytes of a text", len(text), maxText)
		}
		if !utf8.ValidString(text) {
			return malformed("a text is not UTF-8")
		}
	}
	return nil
}

func isLabel(text string) bool { return len(validation.IsDNS1123Label(text)) == 0 }

func isLabelValue(text string) bool { return len(content.IsLabelValue(text)) == 0 }

func isFamily(text string) bool { return text == "IPv4" || text == "IPv6" }

func isTime(t time.Time) bool {
	return t.Unix() > 0 && t.Year() <= 9999
}

func isDigest(d discovery.Digest) bool {
	text, ok := strings.CutPrefix(string(d), "sha256:")
	raw, err := hex.DecodeString(text)
	return ok && err == nil && len(raw) == 32 && text == strings.ToLower(text)
}
