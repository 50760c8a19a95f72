package node

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"
)

func TestAddressesAreGivenInACircle(t *testing.T) {
	a := newAddresses(netip.MustParsePrefix("10.1.2.77/29"))
	assert.Equal(t, "10.1.2.73", a.node.String(), "the first of the range")
	take := func(n int) string {
		t.Helper()
		address, err := a.take(object(n))
		require.NoError(t, err)
		return address.String()
	}
	a.keep(object(1), netip.MustParseAddr("10.1.2.75"))
	assert.Equal(t, "10.1.2.75", take(1), "the one that it has")
	assert.Equal(t, "10.1.2.74", take(2))
	assert.Equal(t, "10.1.2.74", take(2), "the same again")
	assert.Equal(t, "10.1.2.76", take(3), "one that is used is not given twice")
	a.release(object(2))
	assert.Equal(t, "10.1.2.77", take(4), "one that was given back comes last")
	assert.Equal(t, "10.1.2.78", take(5))
	assert.Equal(t, "10.1.2.79", take(6))
	assert.Equal(t, "10.1.2.74", take(7))
	_, err := a.take(object(8))
	require.ErrorIs(t, err, errAddressesUsedUp)
	a.release(object(3))
	assert.Equal(t, "10.1.2.76", take(8))
	a.release(object(99))
}

func object(n int) cache.ObjectName {
	return cache.ObjectName{Namespace: "test", Name: fmt.Sprint(n)}
}
