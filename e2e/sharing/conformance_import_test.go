package sharing_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// differ is an error with the difference, if there is one.
func differ(what string, want, found any) error {
	if diff := cmp.Diff(want, found); diff != "" {
		return fmt.Errorf("%s (-want +found):\n%s", what, diff)
	}
	return nil
}

// The two ports of the Service.
func tcpPort() corev1.ServicePort {
	return corev1.ServicePort{Name: "tcp", Port: 42, Protocol: corev1.ProtocolTCP}
}

func udpPort() corev1.ServicePort {
	return corev1.ServicePort{Name: "udp", Port: 42, Protocol: corev1.ProtocolUDP}
}

func importLivesWithItsExporters(c *stage) {
	c.deploy(c.first)
	c.exportWith(c.first, nil)
	c.imported(c.first)
	c.deploy(c.second)
	c.exportWith(c.second, nil)
	c.stays(c.first)
	for _, s := range c.all {
		c.imported(s, exportedBy(c.first, c.second))
	}

	c.first.unexport(hello)
	c.stays(c.first)
	for _, s := range c.all {
		c.imported(s, exportedBy(c.second))
	}
	c.unexport(c.second)
}

func exportedMetadataOnly(c *stage) {
	exported := map[string]string{"exported": "true"}
	c.deploy(c.first)
	c.exportWith(c.first, exported)
	for _, s := range c.all {
		c.imported(s, hasMetadata(exported, map[string]string{"of-service": "", "of-export": ""}))
	}
}

func conflictingMetadata(c *stage) {
	older, younger := map[string]string{"older": "true"}, map[string]string{"younger": "true"}
	c.dispute(service(), service(), older, younger)
	c.conflicted(v1beta1.ServiceExportReasonLabelsConflict, v1beta1.ServiceExportReasonAnnotationsConflict)
	for _, s := range c.all {
		c.imported(s, exportedBy(c.first, c.second), hasMetadata(older, younger))
	}
}

func clusterSetIPImport(c *stage) {
	c.deploy(c.first)
	c.exportWith(c.first, nil)
	c.condition(c.first, v1beta1.ServiceExportConditionValid, metav1.ConditionTrue)
	for _, s := range c.all {
		assert.Equal(c, v1beta1.ClusterSetIP, c.imported(s).Spec.Type)
	}
	c.unexport(c.first)
}

func sessionAffinity(c *stage) {
	c.deploy(c.first)
	c.exportWith(c.first, nil)
	for _, s := range c.all {
		c.imported(s, func(i *v1beta1.ServiceImport) error {
			want := corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(10))}}
			if i.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
				return fmt.Errorf("affinity %q", i.Spec.SessionAffinity)
			}
			return differ("affinity", &want, i.Spec.SessionAffinityConfig)
		})
	}
}

func internalTrafficPolicy(c *stage) {
	policy := new(corev1.ServiceInternalTrafficPolicyCluster)
	c.deploy(c.first, func(s *corev1.Service) { s.Spec.InternalTrafficPolicy = policy })
	c.exportWith(c.first, nil)
	for _, s := range c.all {
		c.imported(s, func(i *v1beta1.ServiceImport) error {
			return differ("internal traffic policy", policy, i.Spec.InternalTrafficPolicy)
		})
	}
}

func trafficDistribution(c *stage) {
	distribution := new(corev1.ServiceTrafficDistributionPreferClose)
	c.deploy(c.first, func(s *corev1.Service) { s.Spec.TrafficDistribution = distribution })
	c.exportWith(c.first, nil)
	for _, s := range c.all {
		c.imported(s, func(i *v1beta1.ServiceImport) error {
			return differ("traffic distribution", distribution, i.Spec.TrafficDistribution)
		})
	}
}

func anIPForEachFamily(c *stage) {
	c.deploy(c.first)
	c.exportWith(c.first, nil)
	for _, s := range c.all {
		i := c.imported(s, func(i *v1beta1.ServiceImport) error {
			if len(i.Spec.IPs) == 0 {
				return errors.New("no IP")
			}
			return nil
		})
		require.Len(c, i.Spec.IPFamilies, len(i.Spec.IPs))
		for n, ip := range i.Spec.IPs {
			address, err := netip.ParseAddr(ip)
			require.NoError(c, err)
			assert.Equal(c, i.Spec.IPFamilies[n], family(address))
		}
	}
}

func family(address netip.Addr) corev1.IPFamily {
	if address.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

func portsOfTheExport(c *stage) {
	tcp, udp := tcpPort(), udpPort()
	tcp.AppProtocol = new("example.com/greeting")
	c.deploy(c.first, ports(tcp, udp))
	c.exportWith(c.first, nil)
	for _, s := range c.all {
		c.imported(s, hasPorts(tcp, udp))
	}
}

func portUnion(c *stage) {
	sctp := corev1.ServicePort{Name: "sctp", Port: 142, Protocol: corev1.ProtocolSCTP}
	c.dispute(service(), service(ports(tcpPort(), sctp)))
	c.conflicted(v1beta1.ServiceExportReasonPortConflict)
	for _, s := range c.all {
		c.imported(s, exportedBy(c.first, c.second), hasPorts(tcpPort(), udpPort(), sctp))
	}
}

func conflictingPorts(c *stage) {
	other := tcpPort()
	other.Port++
	c.dispute(service(), service(ports(other)))
	c.conflicted(v1beta1.ServiceExportReasonPortConflict)
	for _, s := range c.all {
		c.imported(s, exportedBy(c.first, c.second), hasPorts(tcpPort(), udpPort()))
	}
}

func headlessImport(c *stage) {
	c.deploy(c.first, headless)
	c.exportWith(c.first, nil)
	for _, s := range c.all {
		assert.Equal(c, v1beta1.Headless, c.imported(s).Spec.Type)
	}
	c.unexport(c.first)
}

func headlessHasNoIP(c *stage) {
	c.deploy(c.first, headless)
	c.exportWith(c.first, nil)
	c.imported(c.first)
	c.steadily(c.first, "no IP", func(ctx context.Context) error {
		i := &v1beta1.ServiceImport{}
		if err := c.lookAt(ctx, c.first, i); err != nil {
			return err
		}
		if len(i.Spec.IPs) > 0 {
			return fmt.Errorf("IPs %v", i.Spec.IPs)
		}
		return nil
	})
}

func externalName(c *stage) {
	c.deploy(c.first, func(s *corev1.Service) {
		s.Spec.Type, s.Spec.ExternalName, s.Spec.IPFamilyPolicy = corev1.ServiceTypeExternalName, "example.com", nil
	})
	c.exportWith(c.first, nil)
	invalid := c.condition(c.first, v1beta1.ServiceExportConditionValid, metav1.ConditionFalse)
	assert.Equal(c, string(v1beta1.ServiceExportReasonInvalidServiceType), invalid.Reason)
	c.steadily(c.first, "no ServiceImport", func(ctx context.Context) error {
		for _, s := range c.all {
			if err := c.absent(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

func conflictingTypes(c *stage) {
	c.dispute(service(), service(headless))
	c.conflicted(v1beta1.ServiceExportReasonTypeConflict)
	for _, s := range c.all {
		assert.Equal(c, v1beta1.ClusterSetIP, c.imported(s, exportedBy(c.first, c.second)).Spec.Type)
	}
}
