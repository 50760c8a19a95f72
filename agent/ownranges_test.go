package agent

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestOwnRangesAreOfNodesPodsAndServices(t *testing.T) {
	scheme, err := newScheme()
	require.NoError(t, err)
	objects := []client.Object{
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{PodCIDRs: []string{"10.1.0.0/24", "fd00::/64"}},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.16.0.9"}, {Type: corev1.NodeHostName, Address: "n"}}},
		},
		&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/12"}}},
	}
	c := ctrlfake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	got, err := (&ownRanges{c}).read(t.Context())
	require.NoError(t, err)
	assert.ElementsMatch(t, []netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/24"), netip.MustParsePrefix("fd00::/64"), netip.MustParsePrefix("172.16.0.9/32"), netip.MustParsePrefix("10.96.0.0/12"),
	}, got)

	refused := interceptor.NewClient(c, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("not now")
	}})
	_, err = (&ownRanges{refused}).read(t.Context())
	assert.ErrorContains(t, err, "not now", "an error is not: there are none")
}
