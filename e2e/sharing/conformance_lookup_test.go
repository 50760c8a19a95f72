package sharing_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// slices waits for the slices of one address type whose labels are the MCS API's and that have
// endpoints, of which check holds.
func (c *stage) slices(s *side, of corev1.IPFamily, check func(discoveryv1.EndpointSlice) error) []discoveryv1.EndpointSlice {
	c.Helper()
	var found []discoveryv1.EndpointSlice
	c.within(s, endpointLimit, fmt.Sprintf("EndpointSlice %s", of), func(ctx context.Context) error {
		var list discoveryv1.EndpointSliceList
		err := s.Client.List(ctx, &list, client.InNamespace(s.namespace), client.HasLabels{v1beta1.LabelServiceName, v1beta1.LabelSourceCluster})
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(list.Items, func(e discoveryv1.EndpointSlice) bool {
			return string(e.AddressType) != string(of) || len(e.Endpoints) == 0
		})
		if len(found) == 0 {
			return errors.New("no EndpointSlice")
		}
		for _, e := range found {
			if err := check(e); err != nil {
				return err
			}
		}
		return nil
	})
	return found
}

func endpointSlices(c *stage) {
	c.deploy(c.first)
	c.exportWith(c.first, nil)
	found := map[*side][]discoveryv1.EndpointSlice{}
	for _, s := range c.all {
		for _, of := range c.families(s) {
			for _, e := range c.slices(s, of, func(discoveryv1.EndpointSlice) error { return nil }) {
				assert.Equal(c, hello, e.Labels[v1beta1.LabelServiceName])
				assert.Equal(c, c.first.cluster.Name(), e.Labels[v1beta1.LabelSourceCluster])
				assert.NotContains(c, []string{"", "endpointslice-controller.k8s.io"}, e.Labels[discoveryv1.LabelManagedBy])
				found[s] = append(found[s], e)
			}
		}
	}
	c.first.unexport(hello)
	for _, s := range c.all {
		for _, e := range found[s] {
			c.within(s, importLimit, "the slice goes", func(ctx context.Context) error {
				err := s.Client.Get(ctx, client.ObjectKeyFromObject(&e), &discoveryv1.EndpointSlice{})
				if apierrors.IsNotFound(err) {
					return nil
				}
				return fmt.Errorf("slice %s is there: %w", e.Name, err)
			})
		}
	}
}

// requests starts the Pods that requests come from.
func (c *stage) requests() {
	c.Helper()
	for _, s := range c.all {
		s.request()
	}
}

func recordType(of corev1.IPFamily) string {
	if of == corev1.IPv4Protocol {
		return "A"
	}
	return "AAAA"
}

// resolves waits until a name has exactly these addresses.
func (c *stage) resolves(s *side, of corev1.IPFamily, name string, want ...string) {
	c.Helper()
	slices.Sort(want)
	script := fmt.Sprintf("nslookup -type=%s %s.", recordType(of), name)
	c.within(s, lookupLimit, script, func(ctx context.Context) error {
		out, err := s.sh(ctx, script)
		if err != nil {
			return err
		}
		return differ(out, want, answers(out))
	})
}

// answers are the addresses that nslookup prints, sorted, without the server's own.
func answers(out string) []string {
	_, answer, _ := strings.Cut(out, "\n\n")
	var found []string
	for line := range strings.Lines(answer) {
		if address, is := strings.CutPrefix(line, "Address: "); is {
			found = append(found, strings.TrimSpace(address))
		}
	}
	slices.Sort(found)
	return found
}

func lookupIsTheClusterSetIP(c *stage) {
	c.deploy(c.first)
	c.requests()
	c.exportWith(c.first, nil)
	for _, s := range c.all {
		i := c.imported(s, func(i *v1beta1.ServiceImport) error {
			if len(i.Spec.IPs) == 0 {
				return errors.New("no IP")
			}
			return nil
		})
		for _, ip := range i.Spec.IPs {
			c.resolves(s, family(netip.MustParseAddr(ip)), s.name(hello), ip)
		}
	}
}

// serviceRecords waits until a name has exactly these SRV records: "port target".
func (c *stage) serviceRecords(s *side, want ...string) {
	c.Helper()
	slices.Sort(want)
	script := fmt.Sprintf("nslookup -type=SRV %s.", s.name(hello))
	c.within(s, lookupLimit, script, func(ctx context.Context) error {
		out, err := s.sh(ctx, script)
		if err != nil {
			return err
		}
		var found []string
		for line := range strings.Lines(out) {
			if _, record, is := strings.Cut(line, "service = "); is {
				// Priority and weight come before.
				fields := strings.Fields(record)
				found = append(found, strings.TrimSuffix(strings.Join(fields[2:], " "), "."))
			}
		}
		slices.Sort(found)
		return differ(out, want, found)
	})
}

func lookupOfServiceRecord(c *stage) {
	c.deploy(c.first)
	c.requests()
	c.exportWith(c.first, nil)
	for _, s := range c.all {
		c.serviceRecords(s, "42 "+s.name(hello))
	}
}

func clusterLocalIsLocal(c *stage) {
	c.deploy(c.first)
	c.requests()
	c.exportWith(c.first, nil)
	local := &corev1.Service{}
	require.NoError(c, c.first.Client.Get(c.Context(), client.ObjectKey{Namespace: c.first.namespace, Name: hello}, local))
	name := strings.TrimSuffix(c.first.name(hello), "clusterset.local") + "cluster.local"
	c.resolves(c.first, family(netip.MustParseAddr(local.Spec.ClusterIP)), name, local.Spec.ClusterIP)
	for _, s := range c.all[1:] {
		c.imported(s)
		out, err := s.sh(c.Context(), "nslookup "+name+".")
		require.NoError(c, err)
		assert.Contains(c, out, "NXDOMAIN", "an import adds nothing to cluster.local")
	}
}

// local waits for the endpoints that a cluster's own Service has, all ready.
func (c *stage) local(s *side, of corev1.IPFamily, count int) []discoveryv1.Endpoint {
	c.Helper()
	var found []discoveryv1.Endpoint
	c.within(s, endpointLimit, "own endpoints", func(ctx context.Context) error {
		found = nil
		var list discoveryv1.EndpointSliceList
		err := s.Client.List(ctx, &list, client.InNamespace(s.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: hello})
		for _, slice := range list.Items {
			if string(slice.AddressType) == string(of) {
				found = append(found, slice.Endpoints...)
			}
		}
		switch {
		case err != nil:
			return err
		case len(found) != count:
			return fmt.Errorf("%d endpoints, not %d", len(found), count)
		case slices.ContainsFunc(found, func(e discoveryv1.Endpoint) bool { return !ready(e) }):
			return errors.New("not all are ready")
		}
		return nil
	})
	return found
}

func ready(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready }

func addresses(endpoints []discoveryv1.Endpoint) []string {
	var all []string
	for _, e := range endpoints {
		all = append(all, e.Addresses...)
	}
	return all
}

func lookupIsReadyEndpoints(c *stage) {
	c.first.backend(hello, 2, service(headless))
	c.requests()
	c.exportWith(c.first, nil)
	for _, s := range c.all {
		for _, of := range c.families(s) {
			c.resolves(s, of, s.name(hello), addresses(c.local(c.first, of, 2))...)
		}
	}
}

func lookupOfHostname(c *stage) {
	c.first.statefulSet(hello, 2)
	c.first.service(hello, map[string]string{"app": hello}, service(headless))
	c.requests()
	c.exportWith(c.first, nil)
	for _, s := range c.all {
		for _, of := range c.families(s) {
			found := c.slices(s, of, func(e discoveryv1.EndpointSlice) error {
				if len(e.Endpoints) != 2 {
					return fmt.Errorf("%d endpoints", len(e.Endpoints))
				}
				for _, endpoint := range e.Endpoints {
					if !ready(endpoint) || endpoint.Hostname == nil || *endpoint.Hostname == "" {
						return fmt.Errorf("endpoint %+v", endpoint)
					}
				}
				return nil
			})
			require.Len(c, found, 1)
			for _, e := range found[0].Endpoints {
				c.resolves(s, of, *e.Hostname+"."+found[0].Labels[v1beta1.LabelSourceCluster]+"."+s.name(hello), e.Addresses...)
			}
		}
	}
}

func lookupOfEndpointRecords(c *stage) {
	c.first.backend(hello, 2, service(headless))
	c.requests()
	c.exportWith(c.first, nil)
	var want []string
	for _, of := range c.families(c.first) {
		for _, address := range addresses(c.local(c.first, of, 2)) {
			// A Pod without a name of its own goes by its address.
			host := strings.NewReplacer(".", "-", ":", "-").Replace(address)
			want = append(want, fmt.Sprintf("42 %s.%s.%s", host, c.first.cluster.Name(), c.first.name(hello)))
		}
	}
	for _, s := range c.all {
		c.serviceRecords(s, want...)
	}
}
