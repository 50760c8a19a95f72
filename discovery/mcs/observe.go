package mcs

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/fleetling/fleetling/discovery/record"
)

// reasonNotPermitted is a reason of ours beside KEP-1645's.
const reasonNotPermitted v1beta1.ServiceExportConditionReason = "NotPermitted"

// invalid is why a ServiceExport exports nothing.
type invalid struct {
	reason  v1beta1.ServiceExportConditionReason
	message string
}

// local is one exported Service as this cluster has it.
type local struct {
	export *v1beta1.ServiceExport
	// service is nil where there is none.
	service *corev1.Service
	// slices are the Service's own, without those that are imported.
	slices []discoveryv1.EndpointSlice
}

// observe says what this cluster contributes, or why it contributes nothing. The
// same Service and slices always give the same Share.
func observe(cluster string, l local) (Share, *invalid) {
	switch {
	case l.service == nil:
		return Share{}, &invalid{v1beta1.ServiceExportReasonNoService, fmt.Sprintf("there is no Service %s here", l.export.Name)}
	case l.service.Spec.Type == corev1.ServiceTypeExternalName:
		return Share{}, &invalid{v1beta1.ServiceExportReasonInvalidServiceType, "a Service of type ExternalName can't be exported"}
	case ours(l.service):
		return Share{}, &invalid{v1beta1.ServiceExportReasonInvalidServiceType, "the Service is itself derived from an import"}
	}
	return Share{Cluster: cluster, Export: exportOf(l.export, l.service), Slices: slicesOf(l.slices)}, nil
}

func exportOf(export *v1beta1.ServiceExport, service *corev1.Service) record.Export {
	e := record.Export{
		Namespace:       export.Namespace,
		Name:            export.Name,
		Created:         export.CreationTimestamp.UTC().Truncate(time.Second),
		Type:            clusterSetIP,
		SessionAffinity: cmp.Or(string(service.Spec.SessionAffinity), noAffinity),
	}
	// Never the object's own labels and annotations: only what its owner named.
	e.Labels, _ = fitting("exportedLabels", export.Spec.ExportedLabels, validation.IsValidLabelValue)
	e.Annotations, _ = fitting("exportedAnnotations", export.Spec.ExportedAnnotations, anyValue)
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		e.Type = headless
	}
	if config := service.Spec.SessionAffinityConfig; config != nil && config.ClientIP != nil && config.ClientIP.TimeoutSeconds != nil {
		e.AffinityTimeoutSeconds = *config.ClientIP.TimeoutSeconds
	}
	if policy := service.Spec.InternalTrafficPolicy; policy != nil {
		e.InternalTrafficPolicy = string(*policy)
	}
	e.TrafficDistribution = valueOf(service.Spec.TrafficDistribution)
	for _, family := range service.Spec.IPFamilies {
		e.IPFamilies = append(e.IPFamilies, string(family))
	}
	for _, p := range service.Spec.Ports {
		e.Ports = append(e.Ports, record.Port{
			Name: p.Name, Protocol: cmp.Or(string(p.Protocol), string(corev1.ProtocolTCP)), AppProtocol: valueOf(p.AppProtocol), Port: p.Port,
		})
	}
	// In a record they are sorted: the peers are to see what we see.
	slices.SortFunc(e.Ports, func(a, b record.Port) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	return e
}

// unfitting is what of an export does not travel, in words; empty is nothing.
func unfitting(export *v1beta1.ServiceExport) string {
	_, labels := fitting("exportedLabels", export.Spec.ExportedLabels, validation.IsValidLabelValue)
	_, annotations := fitting("exportedAnnotations", export.Spec.ExportedAnnotations, anyValue)
	return list(append(labels, annotations...))
}

// fitting keeps what can be a label or annotation. The schema of ServiceExport
// lets anything pass, and one bad value would have every cluster's API server
// refuse the ServiceImport.
func fitting(field string, exported map[string]string, check func(string) []string) (kept map[string]string, left []string) {
	for _, key := range slices.Sorted(maps.Keys(exported)) {
		if why := append(validation.IsQualifiedName(key), check(exported[key])...); len(why) > 0 {
			left = append(left, fmt.Sprintf("%s[%.70q]: %s", field, key, why[0]))
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = exported[key]
	}
	return kept, left
}

func anyValue(string) []string { return nil }

// slicesOf keeps the slicing, so that an endpoint that changes changes one part.
// An empty slice says nothing.
func slicesOf(local []discoveryv1.EndpointSlice) []record.Slice {
	var all []record.Slice
	for _, s := range local {
		if s.AddressType != discoveryv1.AddressTypeIPv4 && s.AddressType != discoveryv1.AddressTypeIPv6 {
			continue
		}
		slice := record.Slice{AddressType: string(s.AddressType), Ports: slicePorts(s.Ports), Endpoints: endpoints(s.Endpoints)}
		if len(slice.Endpoints) > 0 {
			all = append(all, slice)
		}
	}
	slices.SortFunc(all, compareSlices)
	return all
}

// compareSlices goes by what rarely changes: the first address stays when another
// endpoint comes or goes.
func compareSlices(a, b record.Slice) int {
	if order := cmp.Compare(a.AddressType, b.AddressType); order != 0 || len(a.Endpoints) == 0 || len(b.Endpoints) == 0 {
		return cmp.Or(order, cmp.Compare(len(a.Endpoints), len(b.Endpoints)))
	}
	byName := func(a, b record.SlicePort) int { return cmp.Compare(a.Name, b.Name) }
	return cmp.Or(compareAddresses(a.Endpoints[0], b.Endpoints[0]), slices.CompareFunc(a.Ports, b.Ports, byName))
}

func compareAddresses(a, b record.Endpoint) int {
	first, _ := netip.ParseAddr(a.Address)
	second, _ := netip.ParseAddr(b.Address)
	return first.Compare(second)
}

func slicePorts(ports []discoveryv1.EndpointPort) []record.SlicePort {
	var all []record.SlicePort
	for _, p := range ports {
		// No number is all ports, which no Service can lead to.
		if p.Port == nil {
			continue
		}
		port := record.SlicePort{Name: valueOf(p.Name), Protocol: string(corev1.ProtocolTCP), AppProtocol: valueOf(p.AppProtocol), Port: *p.Port}
		if p.Protocol != nil {
			port.Protocol = string(*p.Protocol)
		}
		all = append(all, port)
	}
	slices.SortFunc(all, func(a, b record.SlicePort) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	return all
}

// endpoints leaves out nodeName and targetRef, which another cluster would take
// for a node and a Pod of its own. Only the first address counts
// (discovery.k8s.io/v1, Endpoint.addresses).
func endpoints(local []discoveryv1.Endpoint) []record.Endpoint {
	all := make([]record.Endpoint, 0, len(local))
	for _, e := range local {
		if len(e.Addresses) == 0 {
			continue
		}
		address, err := netip.ParseAddr(e.Addresses[0])
		if err != nil {
			continue
		}
		ready := e.Conditions.Ready == nil || *e.Conditions.Ready
		all = append(all, record.Endpoint{
			Address: address.String(),
			Ready:   ready,
			// Not given is as ready (discovery.k8s.io/v1, EndpointConditions.serving).
			Serving:     e.Conditions.Serving == nil && ready || e.Conditions.Serving != nil && *e.Conditions.Serving,
			Terminating: e.Conditions.Terminating != nil && *e.Conditions.Terminating,
			Hostname:    valueOf(e.Hostname),
			Zone:        zone(e.Zone),
		})
	}
	slices.SortFunc(all, func(a, b record.Endpoint) int {
		return cmp.Or(compareAddresses(a, b), cmp.Compare(a.Hostname, b.Hostname))
	})
	return all
}

// zone leaves out what no node can have: the schema of EndpointSlice checks
// nothing.
func zone(s *string) string {
	if s == nil || len(validation.IsValidLabelValue(*s)) > 0 {
		return ""
	}
	return *s
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
