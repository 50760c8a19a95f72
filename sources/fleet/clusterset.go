package fleet

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetling/fleetling/sources"
)

// Registry is where the members of the ClusterSet put their records. One of its
// fields is set; none is no ClusterSet.
type Registry struct {
	// Git is the URL of a repository of its own, https, http or ssh.
	Git string
	// NATS are the URLs of the servers of one JetStream, nats or tls, and Bucket is
	// the key-value bucket there.
	NATS   []string
	Bucket string
	Line   int
}

// ExportRule says who may export a namespace.
type ExportRule struct {
	// Namespace is one DNS label.
	Namespace string
	// Clusters are names; When selects by labels. A cluster that either has may
	// export. Without both, every cluster may.
	Clusters []string
	When     labels.Selector
	Line     int

	requires []requirement
}

const maxServers = 16

func decodeRegistry(d decoder, at item) *Registry {
	r := &Registry{Bucket: "clusterset", Line: at.line}
	before := len(d.problems.kept)
	d.object(at, fields{
		"git": {read: func(at item) {
			d.object(at, fields{"url": {required: true, read: func(at item) { r.Git = d.registryURL(at, "https", "http", "ssh") }}})
		}},
		"nats": {read: func(at item) {
			d.object(at, fields{"servers": {required: true, read: func(at item) {
				d.list(at, maxServers, func(at item) { r.NATS = append(r.NATS, d.registryURL(at, "nats", "tls")) })
			}}, "bucket": {read: d.dnsLabel(&r.Bucket, validation.DNS1123LabelMaxLength)}})
		}},
	})
	if (r.Git == "") == (len(r.NATS) == 0) && len(d.problems.kept) == before {
		d.report(at.line, d.reason, "registry must hold one of git: {url: ...} and nats: {servers: [...]}")
	}
	return r
}

// registryURL does not repeat what it refuses: it may hold a password.
func (d decoder) registryURL(at item, schemes ...string) string {
	text, ok := d.text(at, d.reason)
	if !ok {
		return ""
	}
	u, err := url.Parse(text.Value)
	switch {
	case err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme):
		d.report(text.Line, d.reason, "%s must be a URL of one of the schemes %s", at.name, strings.Join(schemes, ", "))
	case u.User != nil && u.Scheme != "ssh", u.User != nil && hasPassword(u.User):
		d.report(text.Line, d.reason, "%s holds credentials: put them into the Secret fleetling-registry of each cluster", at.name)
	default:
		return text.Value
	}
	return ""
}

func hasPassword(user *url.Userinfo) bool {
	_, has := user.Password()
	return has
}

func decodeExports(d decoder, at item) []ExportRule {
	rules := []ExportRule{} // an empty list is said: nobody may export
	seen := map[string]int{}
	d.list(at, maxItems, func(at item) {
		rule := ExportRule{Line: at.line}
		var clusters []Text
		d.object(at, fields{
			"namespace": {required: true, read: d.dnsLabel(&rule.Namespace, validation.DNS1123LabelMaxLength)},
			"clusters":  {read: func(at item) { clusters = d.texts(at, maxItems, d.reason) }},
			"when":      {read: func(at item) { rule.requires = decodeWhen(d, at) }},
		})
		for _, name := range clusters {
			if !isDNSLabel(name.Value) {
				d.report(name.Line, d.reason, "%.80q is not the name of a cluster", name.Value)
			}
			rule.Clusters = append(rule.Clusters, name.Value)
		}
		if first, twice := seen[rule.Namespace]; twice {
			d.report(at.line, d.reason, "namespace %.80q stands twice, first in line %d: put its clusters into one line", rule.Namespace, first)
		}
		seen[rule.Namespace] = at.line
		rules = append(rules, rule)
	})
	return rules
}

// closedNamespace tells of namespaces that are exported by nobody unless fleetling.yaml says so.
func closedNamespace(namespace string) bool {
	return strings.HasPrefix(namespace, "kube-") || namespace == "default" || namespace == "fleetling-system"
}

// MayExport tells whether a cluster of the list may export Services of a
// namespace. Where `exports` stands it is all there is; else all namespaces are
// open but kube-*, default and fleetling-system. A cluster that is not listed, or
// whose entry has a problem, exports nothing.
func (f Fleet) MayExport(cluster, namespace string) bool {
	entry, listed := f.Cluster(cluster)
	if !listed || entry.Problem != nil {
		return false
	}
	if f.Exports == nil {
		return !closedNamespace(namespace)
	}
	at := slices.IndexFunc(f.Exports, func(r ExportRule) bool { return r.Namespace == namespace })
	if at < 0 {
		return false
	}
	rule := f.Exports[at]
	return rule.Clusters == nil && rule.When == nil ||
		slices.Contains(rule.Clusters, cluster) ||
		rule.When != nil && rule.When.Matches(labels.Set(entry.Labels))
}

// overlap names the first other entry that has an address of this one's.
func overlap(all []Cluster, mine Cluster) (Cluster, bool) {
	for _, other := range all {
		if other.Name == mine.Name {
			continue
		}
		for _, a := range mine.Ranges() {
			if slices.ContainsFunc(other.Ranges(), a.Overlaps) {
				return other, true
			}
		}
	}
	return Cluster{}, false
}

// Overlaps are pairs of entries whose endpoint ranges overlap: which cluster an
// address belongs to can't be told. In name order, each pair once.
func (f Fleet) Overlaps() []*sources.Error {
	var found []*sources.Error
	for i, cluster := range f.Clusters {
		if other, ok := overlap(f.Clusters[:i], cluster); ok {
			found = append(found, &sources.Error{
				Reason: sources.InvalidFleetFile, File: cluster.File, Line: cluster.Line, Object: "Cluster/" + cluster.Name,
				Err: fmt.Errorf("its endpoint ranges overlap those of %s (%s): give one of them others", other.Name, other.File),
			})
		}
	}
	return found
}
