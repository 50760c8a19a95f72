package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownRanges reads where this cluster's own nodes, Pods and Services are: no
// endpoint of a peer may lie there.
type ownRanges struct {
	// client asks the API server: this is rare, and nodes change all the time.
	client client.Reader
}

const pageSize = 500

func (o *ownRanges) read(ctx context.Context) ([]netip.Prefix, error) {
	var all []netip.Prefix
	next := ""
	for {
		var nodes corev1.NodeList
		if err := o.client.List(ctx, &nodes, client.Limit(pageSize), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		for i := range nodes.Items {
			all = append(all, rangesOf(&nodes.Items[i])...)
		}
		if next = nodes.Continue; next == "" {
			break
		}
	}
	var services networkingv1.ServiceCIDRList
	if err := o.client.List(ctx, &services); err != nil {
		return nil, fmt.Errorf("list service ranges: %w", err)
	}
	for _, s := range services.Items {
		all = append(all, parsePrefixes(s.Spec.CIDRs)...)
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all), nil
}

func rangesOf(node *corev1.Node) []netip.Prefix {
	all := parsePrefixes(node.Spec.PodCIDRs)
	for _, address := range node.Status.Addresses {
		if addr, err := netip.ParseAddr(address.Address); err == nil {
			all = append(all, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()))
		}
	}
	return all
}

// parsePrefixes leaves out what the API server has taken and netip does not.
func parsePrefixes(texts []string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			all = append(all, prefix.Masked())
		}
	}
	return all
}
