package mcs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// importReady is a ServiceImport's only condition.
func importReady(i Import, ips []string, derived *corev1.Service) metav1.Condition {
	condition := metav1.Condition{Type: string(v1beta1.ServiceImportConditionReady), Status: metav1.ConditionFalse}
	switch {
	case derived == nil || len(ips) > 0:
		condition.Status = metav1.ConditionTrue
		condition.Reason = string(v1beta1.ServiceImportReasonReady)
		condition.Message = "the Service can be reached here"
	case len(derived.Spec.ClusterIPs) == 0:
		condition.Reason = string(v1beta1.ServiceImportReasonPending)
		condition.Message = fmt.Sprintf("Service %s has no cluster IP yet", derived.Name)
	default:
		condition.Reason = string(v1beta1.ServiceImportReasonIPFamilyNotSupported)
		condition.Message = fmt.Sprintf("exported over %s, and this cluster has no Service addresses of that family", strings.Join(i.Service.IPFamilies, ", "))
	}
	return condition
}

// verdict is all that a ServiceExport's conditions are made of.
type verdict struct {
	invalid *invalid
	// left is what of a valid export does not travel, in words.
	left      string
	published bool
	conflicts []Conflict
}

// exportConditions are always the same three types.
func exportConditions(v verdict) []metav1.Condition {
	if v.invalid != nil {
		return []metav1.Condition{
			exportCondition(v1beta1.ServiceExportConditionValid, metav1.ConditionFalse, v.invalid.reason, v.invalid.message),
			exportCondition(v1beta1.ServiceExportConditionReady, metav1.ConditionFalse, v1beta1.ServiceExportReasonPending, "not valid: nothing is exported"),
			exportCondition(v1beta1.ServiceExportConditionConflict, metav1.ConditionFalse, v1beta1.ServiceExportReasonNoConflicts, "not valid: nothing is exported"),
		}
	}
	all := []metav1.Condition{
		exportCondition(v1beta1.ServiceExportConditionValid, metav1.ConditionTrue, v1beta1.ServiceExportReasonValid, "the Service can be exported"),
		exportCondition(v1beta1.ServiceExportConditionReady, metav1.ConditionFalse, v1beta1.ServiceExportReasonPending, "not in the registry yet"),
		exportCondition(v1beta1.ServiceExportConditionConflict, metav1.ConditionFalse, v1beta1.ServiceExportReasonNoConflicts, "all exports of this Service agree"),
	}
	if v.left != "" {
		all[0].Message += "; left out: " + v.left
	}
	if v.published {
		all[1] = exportCondition(v1beta1.ServiceExportConditionReady, metav1.ConditionTrue, v1beta1.ServiceExportReasonExported, "in the registry, for the other clusters to read")
	}
	if len(v.conflicts) > 0 {
		var reasons, messages []string
		for _, c := range v.conflicts {
			reasons = append(reasons, c.Reason)
			messages = append(messages, c.Message)
		}
		all[2] = exportCondition(v1beta1.ServiceExportConditionConflict, metav1.ConditionTrue,
			v1beta1.ServiceExportConditionReason(strings.Join(reasons, ",")), strings.Join(messages, "; "))
	}
	return all
}

func exportCondition(kind v1beta1.ServiceExportConditionType, status metav1.ConditionStatus, reason v1beta1.ServiceExportConditionReason, message string) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: status, Reason: string(reason), Message: message}
}

// carry gives next the generation, and the times of old's conditions where the
// status has not changed. It says whether old holds all of next.
func carry(old, next []metav1.Condition, generation int64, now time.Time) bool {
	same := true
	for i := range next {
		next[i].ObservedGeneration = generation
		next[i].LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		j := slices.IndexFunc(old, func(c metav1.Condition) bool { return c.Type == next[i].Type })
		if j >= 0 && old[j].Status == next[i].Status {
			next[i].LastTransitionTime = old[j].LastTransitionTime
		}
		same = same && j >= 0 && sameCondition(old[j], next[i])
	}
	return same
}

// sameCondition compares the time as an instant: the zone may differ.
func sameCondition(a, b metav1.Condition) bool {
	same := a.LastTransitionTime.Equal(&b.LastTransitionTime)
	a.LastTransitionTime, b.LastTransitionTime = metav1.Time{}, metav1.Time{}
	return same && a == b
}
