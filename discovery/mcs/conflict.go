package mcs

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"time"

	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/fleetling/fleetling/discovery/record"
)

// maxNamed is how many clusters a message names.
const maxNamed = 5

// Conflict is one field that the exports of a Service don't agree on.
type Conflict struct {
	// Reason is one of KEP-1645's.
	Reason string
	// Message says which field, who wins, and why.
	Message string
}

// dispute is a field that exports can differ in.
type dispute struct {
	reason v1beta1.ServiceExportConditionReason
	field  string
	// outcome says what comes of it; it has one %s for the winner.
	outcome string
	differs func(winner, other record.Export) bool
}

func disputes() []dispute {
	const winnerTakesAll = "%s decides"
	return []dispute{
		{v1beta1.ServiceExportReasonPortConflict, "ports", "all are exposed, and where they collide %s decides", func(w, o record.Export) bool { return !samePorts(w.Ports, o.Ports) }},
		{v1beta1.ServiceExportReasonTypeConflict, "type", winnerTakesAll, func(w, o record.Export) bool { return w.Type != o.Type }},
		{v1beta1.ServiceExportReasonSessionAffinityConflict, "sessionAffinity", winnerTakesAll, func(w, o record.Export) bool { return affinity(w) != affinity(o) }},
		{v1beta1.ServiceExportReasonSessionAffinityConfigConflict, "sessionAffinityConfig", winnerTakesAll, func(w, o record.Export) bool {
			return affinity(w) == affinity(o) && w.AffinityTimeoutSeconds != o.AffinityTimeoutSeconds
		}},
		{v1beta1.ServiceExportReasonInternalTrafficPolicyConflict, "internalTrafficPolicy", winnerTakesAll, func(w, o record.Export) bool {
			return trafficPolicy(w) != trafficPolicy(o)
		}},
		{v1beta1.ServiceExportReasonTrafficDistributionConflict, "trafficDistribution", winnerTakesAll, func(w, o record.Export) bool {
			return w.TrafficDistribution != o.TrafficDistribution
		}},
		{v1beta1.ServiceExportReasonLabelsConflict, "exportedLabels", winnerTakesAll, func(w, o record.Export) bool { return !maps.Equal(w.Labels, o.Labels) }},
		{v1beta1.ServiceExportReasonAnnotationsConflict, "exportedAnnotations", winnerTakesAll, func(w, o record.Export) bool {
			return !maps.Equal(w.Annotations, o.Annotations)
		}},
	}
}

// conflicts compares all with the first, who wins: where all are as the first is,
// all are alike. apart are the clusters without an IP family in common with it.
func conflicts(shares []Share, apart []string) []Conflict {
	var found []Conflict
	for _, d := range disputes() {
		var differing []string
		for _, s := range shares[1:] {
			if d.differs(shares[0].Export, s.Export) {
				differing = append(differing, s.Cluster)
			}
		}
		if len(differing) > 0 {
			found = append(found, conflict(d, shares, differing))
		}
	}
	if len(apart) > 0 {
		families := dispute{reason: v1beta1.ServiceExportReasonIPFamilyConflict, field: "ipFamilies", outcome: "there is none in common, and %s decides"}
		found = append(found, conflict(families, shares, apart))
	}
	return found
}

func conflict(d dispute, shares []Share, differing []string) Conflict {
	winner := shares[0]
	why := fmt.Sprintf("its export is the oldest (%s)", winner.Export.Created.UTC().Format(time.RFC3339))
	if shares[1].Export.Created.Equal(winner.Export.Created) {
		why = fmt.Sprintf("of the oldest exports (%s) it comes first by name", winner.Export.Created.UTC().Format(time.RFC3339))
	}
	return Conflict{
		Reason: string(d.reason),
		Message: fmt.Sprintf("%s: not the same in all clusters: "+d.outcome+", %s; differing: %s",
			d.field, "cluster "+winner.Cluster, why, list(differing)),
	}
}

// list names some.
func list(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

func affinity(e record.Export) string { return cmp.Or(e.SessionAffinity, noAffinity) }

func trafficPolicy(e record.Export) string { return cmp.Or(e.InternalTrafficPolicy, "Cluster") }
