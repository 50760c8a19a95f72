package capi

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func prefixes(texts ...string) []netip.Prefix {
	var parsed []netip.Prefix
	for _, text := range texts {
		parsed = append(parsed, netip.MustParsePrefix(text))
	}
	return parsed
}

func TestFree(t *testing.T) {
	for name, c := range map[string]struct {
		pool  string
		bits  int
		taken []netip.Prefix
		want  string
	}{
		"the first one of an empty pool":           {"10.0.0.0/8", 16, nil, "10.0.0.0/16"},
		"a pool with host bits":                    {"10.1.2.3/8", 16, nil, "10.0.0.0/16"},
		"after the ones taken":                     {"10.0.0.0/8", 16, prefixes("10.0.0.0/16", "10.1.0.0/16"), "10.2.0.0/16"},
		"in a gap":                                 {"10.0.0.0/8", 16, prefixes("10.2.0.0/16", "10.0.0.0/16"), "10.1.0.0/16"},
		"after a smaller range in its middle":      {"10.0.0.0/8", 16, prefixes("10.0.7.0/24"), "10.1.0.0/16"},
		"after a larger range":                     {"10.0.0.0/8", 16, prefixes("10.0.0.0/12"), "10.16.0.0/16"},
		"beside a range that is elsewhere":         {"10.0.0.0/8", 16, prefixes("192.168.0.0/16", "fd00::/8"), "10.0.0.0/16"},
		"the last one of a pool":                   {"10.0.0.0/15", 16, prefixes("10.0.0.0/16"), "10.1.0.0/16"},
		"the pool as a whole":                      {"10.0.0.0/16", 16, nil, "10.0.0.0/16"},
		"IPv6":                                     {"fd00::/48", 64, prefixes("fd00::/64"), "fd00:0:0:1::/64"},
		"none in a full pool":                      {"10.0.0.0/15", 16, prefixes("10.0.0.0/16", "10.1.128.0/17"), ""},
		"none where everything is taken":           {"10.0.0.0/8", 16, prefixes("0.0.0.0/0"), ""},
		"none at the end of all addresses":         {"255.0.0.0/8", 16, prefixes("255.0.0.0/8"), ""},
		"none that is larger than the pool":        {"10.0.0.0/16", 8, nil, ""},
		"none that is smaller than one address":    {"10.0.0.0/8", 33, nil, ""},
		"ranges that overlap each other are fine":  {"10.0.0.0/8", 16, prefixes("10.0.0.0/9", "10.0.0.0/16", "10.128.0.0/16"), "10.129.0.0/16"},
		"a taken range that holds the pool's half": {"10.0.0.0/8", 9, prefixes("10.127.255.255/32"), "10.128.0.0/9"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := free(netip.MustParsePrefix(c.pool), c.bits, c.taken)
			if c.want == "" {
				assert.Error(t, err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got.String())
		})
	}
}

func TestTwoHundredClustersNeverShareARange(t *testing.T) {
	taken := prefixes("10.96.0.0/12", "10.3.4.0/24", "10.7.0.0/15")
	for i := range 200 {
		got, err := free(netip.MustParsePrefix("10.0.0.0/8"), 16, taken)
		require.NoError(t, err, fmt.Sprint(i))
		for _, other := range taken {
			require.False(t, got.Overlaps(other), "%s and %s", got, other)
		}
		taken = append(taken, got)
	}
}
