package peer

import (
	"fmt"
	"slices"
	"strings"
)

// Any stands in a Rule for every cluster, or for every namespace that has no rule
// of its own and is not protected.
const Any = "*"

// Rule says which clusters may export one namespace.
type Rule struct {
	// Namespace is a name, or Any.
	Namespace string
	// Clusters are names, or Any; none is that nobody may.
	Clusters []string
}

// Policy is `exports:` of fleetling.yaml. The zero value is that it is absent:
// every cluster may export every namespace that is not protected (kube-*,
// default, fleetling-system). With rules, what no rule allows is refused. A rule
// that names a protected namespace allows it; Any never does.
type Policy struct {
	Rules []Rule
}

// Refuses says why cluster may not export namespace; "" is that it may.
func (p Policy) Refuses(cluster, namespace string) string {
	for _, name := range []string{namespace, Any} {
		if name == Any && isProtected(namespace) {
			break
		}
		at := slices.IndexFunc(p.Rules, func(r Rule) bool { return r.Namespace == name })
		if at >= 0 {
			return refusal(p.Rules[at].allows(cluster), cluster, namespace)
		}
	}
	return refusal(len(p.Rules) == 0 && !isProtected(namespace), cluster, namespace)
}

func refusal(allowed bool, cluster, namespace string) string {
	if allowed {
		return ""
	}
	return fmt.Sprintf("cluster %s may not export namespace %s: exports in fleetling.yaml says who may", cluster, namespace)
}

func (r Rule) allows(cluster string) bool {
	return slices.Contains(r.Clusters, cluster) || slices.Contains(r.Clusters, Any)
}

func isProtected(namespace string) bool {
	return strings.HasPrefix(namespace, "kube-") || namespace == "default" || namespace == "fleetling-system"
}
