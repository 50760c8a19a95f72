package mcs

import (
	"crypto/sha256"
	"encoding/base32"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/fleetling/fleetling/discovery/record"
)

const (
	// managedBy marks what this package makes, on a ServiceImport and a derived
	// Service; on an EndpointSlice the label that all of its kind have does.
	managedBy      = "fleetling.dev/managed-by"
	managedByValue = "clusterset"
	slicesBy       = "clusterset.fleetling.dev"

	// derivedAnnotation leads from a ServiceImport to its Service.
	derivedAnnotation = "multicluster.kubernetes.io/derived-service"

	// maxEndpoints is what the API allows in one EndpointSlice.
	maxEndpoints = 1000
)

// ours is that this package has made the object.
func ours(o client.Object) bool {
	if _, isSlice := o.(*discoveryv1.EndpointSlice); isSlice {
		return o.GetLabels()[discoveryv1.LabelManagedBy] == slicesBy
	}
	return o.GetLabels()[managedBy] == managedByValue
}

// hash gives 52 characters that may stand in a name.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// derivedName is the one that all implementations which follow the MCS API's
// reference give.
func derivedName(namespace, name string) string {
	return "derived-" + hash(namespace + "/" + name)[:10]
}

// derivedService gives an import its address, and kube-proxy something to act on.
// It asks for all families that this cluster has, and takes whatever the cluster
// gives: the families of the exports decide only which of its addresses the
// ServiceImport shows. So none has to be known, and no address changes when an
// export comes or goes. A headless import has none: DNS answers from its slices.
func derivedService(i Import) *corev1.Service {
	e := i.Service
	policy := corev1.IPFamilyPolicyPreferDualStack
	traffic := corev1.ServiceInternalTrafficPolicy(trafficPolicy(e))
	service := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.Namespace, Name: derivedName(e.Namespace, e.Name),
			Labels: map[string]string{managedBy: managedByValue, v1beta1.LabelServiceName: e.Name},
		},
		Spec: corev1.ServiceSpec{
			Type:                  corev1.ServiceTypeClusterIP,
			IPFamilyPolicy:        &policy,
			SessionAffinity:       corev1.ServiceAffinity(affinity(e)),
			SessionAffinityConfig: affinityConfig(e),
			InternalTrafficPolicy: &traffic,
			TrafficDistribution:   given(e.TrafficDistribution),
		},
	}
	for _, p := range e.Ports {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name: p.Name, Protocol: corev1.Protocol(p.Protocol), AppProtocol: given(p.AppProtocol), Port: p.Port,
			// What the API server would set: without a selector, slices alone say where
			// a port leads.
			TargetPort: intstr.FromInt32(p.Port),
		})
	}
	return service
}

// serviceImport is what a client of the MCS API reads. derived is the Service as
// the API server has it, nil for a headless one.
func serviceImport(i Import, derived *corev1.Service) *v1beta1.ServiceImport {
	e := i.Service
	object := &v1beta1.ServiceImport{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.ServiceImportKindName},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.Namespace, Name: e.Name,
			Labels: allowed(e.Labels), Annotations: allowed(e.Annotations),
		},
		Spec: v1beta1.ServiceImportSpec{
			// The schema wants the list, also an empty one.
			Ports:                 []v1beta1.ServicePort{},
			Type:                  v1beta1.ServiceImportType(e.Type),
			SessionAffinity:       corev1.ServiceAffinity(e.SessionAffinity),
			SessionAffinityConfig: affinityConfig(e),
			InternalTrafficPolicy: (*corev1.ServiceInternalTrafficPolicy)(given(e.InternalTrafficPolicy)),
			TrafficDistribution:   given(e.TrafficDistribution),
		},
		Status: v1beta1.ServiceImportStatus{EndpointSliceObjects: v1beta1.EndpointSliceObjectsPresent},
	}
	object.Labels[managedBy] = managedByValue
	for _, p := range e.Ports {
		object.Spec.Ports = append(object.Spec.Ports, v1beta1.ServicePort{
			Name: p.Name, Protocol: corev1.Protocol(p.Protocol), AppProtocol: given(p.AppProtocol), Port: p.Port,
		})
	}
	if derived != nil {
		object.Annotations[derivedAnnotation] = derived.Name
		object.Spec.IPs, object.Spec.IPFamilies = addresses(e.IPFamilies, derived)
	} else {
		for _, family := range e.IPFamilies {
			object.Spec.IPFamilies = append(object.Spec.IPFamilies, corev1.IPFamily(family))
		}
	}
	for _, name := range i.Clusters {
		object.Status.Clusters = append(object.Status.Clusters, v1beta1.ClusterStatus{Cluster: name})
	}
	object.Status.Conditions = []metav1.Condition{importReady(i, object.Spec.IPs, derived)}
	return object
}

// addresses are those of the derived Service, in its order, over which the
// exports can be reached; all, where they say nothing of families.
func addresses(families []string, derived *corev1.Service) (ips []string, have []corev1.IPFamily) {
	for i, family := range derived.Spec.IPFamilies {
		if i < len(derived.Spec.ClusterIPs) && (len(families) == 0 || slices.Contains(families, string(family))) {
			ips = append(ips, derived.Spec.ClusterIPs[i])
			have = append(have, family)
		}
	}
	return ips, have
}

// allowed are the exported labels or annotations but those that mean something to
// the machinery of this cluster. It is never nil.
func allowed(exported map[string]string) map[string]string {
	kept := maps.Clone(exported)
	if kept == nil {
		kept = map[string]string{}
	}
	maps.DeleteFunc(kept, func(key, _ string) bool {
		domain, _, prefixed := strings.Cut(key, "/")
		return prefixed && (domain == "fleetling.dev" || strings.HasSuffix(domain, ".fleetling.dev") || domain == "multicluster.kubernetes.io")
	})
	return kept
}

// endpointSlices are the import's endpoints in this cluster, each of one source
// cluster. Their names depend on nothing that an endpoint can change.
func endpointSlices(i Import) []*discoveryv1.EndpointSlice {
	var all []*discoveryv1.EndpointSlice
	for _, s := range i.Slices {
		part := 0
		for chunk := range slices.Chunk(s.Slice.Endpoints, maxEndpoints) {
			all = append(all, endpointSlice(i.Service, s, part, chunk))
			part++
		}
	}
	return all
}

func endpointSlice(e record.Export, s ImportedSlice, part int, endpoints []record.Endpoint) *discoveryv1.EndpointSlice {
	name := hash(strings.Join([]string{e.Namespace, e.Name, s.Cluster, s.Slice.AddressType, strconv.Itoa(s.Index), strconv.Itoa(part)}, "/"))
	slice := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.Namespace, Name: e.Name + "-" + s.Cluster + "-" + name[:10],
			Labels: map[string]string{
				v1beta1.LabelServiceName:     e.Name,
				v1beta1.LabelSourceCluster:   s.Cluster,
				discoveryv1.LabelManagedBy:   slicesBy,
				discoveryv1.LabelServiceName: derivedName(e.Namespace, e.Name),
			},
		},
		AddressType: discoveryv1.AddressType(s.Slice.AddressType),
	}
	if e.Type == headless {
		// Tells kube-proxy that there is nothing to do.
		slice.Labels[corev1.IsHeadlessService] = ""
	}
	for _, p := range s.Slice.Ports {
		protocol := corev1.Protocol(p.Protocol)
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &protocol, AppProtocol: given(p.AppProtocol), Port: &p.Port})
	}
	for _, endpoint := range endpoints {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{endpoint.Address},
			Conditions: discoveryv1.EndpointConditions{Ready: &endpoint.Ready, Serving: &endpoint.Serving, Terminating: &endpoint.Terminating},
			Hostname:   given(endpoint.Hostname),
			Zone:       given(endpoint.Zone),
			Hints:      hints(e, endpoint),
		})
	}
	return slice
}

// hints make a traffic distribution work: kube-proxy goes by hints alone. Without
// nodes in common, a preference for the same node becomes one for the same zone
// (KEP-3015).
func hints(e record.Export, endpoint record.Endpoint) *discoveryv1.EndpointHints {
	if e.TrafficDistribution == "" || e.Type == headless || endpoint.Zone == "" || !endpoint.Ready {
		return nil
	}
	return &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: endpoint.Zone}}}
}

func affinityConfig(e record.Export) *corev1.SessionAffinityConfig {
	if e.SessionAffinity != string(corev1.ServiceAffinityClientIP) || e.AffinityTimeoutSeconds == 0 {
		return nil
	}
	return &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &e.AffinityTimeoutSeconds}}
}

// given is nil for what is not.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
