package peer_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/peer"
	"github.com/fleetling/fleetling/discovery/record"
)

func TestAnEndpointIsTakenOnlyWhereItMayLie(t *testing.T) {
	theirs := ranges("0.0.0.0/1", "128.0.0.0/1", "fd00::/8", "fe80::/10", "::/96", "ff00::/8")
	ours := ranges("10.0.0.0/16", "10.96.0.0/12", "fd12::/48")
	for address, want := range map[string]peer.Reason{
		"10.1.0.1":           "",
		"fd13::1":            "",
		"10.0.3.4":           peer.InsideOurRanges,
		"10.96.0.1":          peer.InsideOurRanges,
		"fd12::1":            peer.InsideOurRanges,
		"2001:db8::1":        peer.OutsideRanges,
		"0.0.0.0":            peer.SpecialAddress,
		"0.1.2.3":            peer.SpecialAddress,
		"::":                 peer.SpecialAddress,
		"127.0.0.1":          peer.SpecialAddress,
		"127.9.9.9":          peer.SpecialAddress,
		"::1":                peer.SpecialAddress,
		"169.254.169.254":    peer.SpecialAddress,
		"fe80::1":            peer.SpecialAddress,
		"224.0.0.1":          peer.SpecialAddress,
		"239.1.1.1":          peer.SpecialAddress,
		"ff02::1":            peer.SpecialAddress,
		"240.0.0.1":          peer.SpecialAddress,
		"255.255.255.255":    peer.SpecialAddress,
		"100.100.100.200":    peer.SpecialAddress,
		"168.63.129.16":      peer.SpecialAddress,
		"fd00:ec2::254":      peer.SpecialAddress,
		"100.100.100.201":    "",
		"fd00:ec2::253":      "",
		"::ffff:10.1.0.1":    peer.InvalidAddress,
		"fd13::1%eth0":       peer.InvalidAddress,
		"::ffff:127.0.0.1":   peer.InvalidAddress,
		"fe80::a9fe:a9fe%a0": peer.InvalidAddress,
	} {
		assert.Equal(t, want, peer.Contain(netip.MustParseAddr(address), theirs, ours), address)
	}
	assert.Equal(t, peer.InvalidAddress, peer.Contain(netip.Addr{}, theirs, ours))
	assert.Equal(t, peer.OutsideRanges, peer.Contain(netip.MustParseAddr("10.1.0.1"), nil, nil))
}

func TestWhatIsRefusedOfAGoodRecordIsCountedAndNamedAndTheRestKept(t *testing.T) {
	w, east := honest(t)
	east.exports(cart, "10.1.0.1", "10.0.0.5", "169.254.169.254", "10.2.0.1", "10.2.0.2", "10.2.0.3", "10.2.0.4")
	require.Zero(t, w.take(east, east.next()).Problem)
	assert.Equal(t, map[string][]string{"east": {"10.1.0.1"}}, addresses(w.Of(cart)))
	view := w.view("east")
	assert.Equal(t, 6, view.RefusedEndpoints)
	require.Len(t, view.Refused, 5)
	assert.Equal(t, peer.Problem{Reason: peer.InsideOurRanges, Message: "shop/cart: endpoint 10.0.0.5 of east is not taken"}, view.Refused[0])
	assert.Equal(t, peer.OutsideRanges, view.Refused[1].Reason)

	w.SetRanges(ranges("10.1.0.0/16"))
	assert.Equal(t, map[string][]string{"east": {}}, addresses(w.Of(cart)), "ranges count when shares are read")
}

func TestThePolicySaysWhoMayExportANamespace(t *testing.T) {
	rules := peer.Policy{Rules: []peer.Rule{
		{Namespace: "shop", Clusters: []string{"east", "west"}},
		{Namespace: "open", Clusters: []string{peer.Any}},
		{Namespace: "default", Clusters: []string{"east"}},
		{Namespace: "shut"},
	}}
	wide := peer.Policy{Rules: append(rules.Rules, peer.Rule{Namespace: peer.Any, Clusters: []string{"east"}})}
	for _, tc := range []struct {
		policy             peer.Policy
		cluster, namespace string
		allowed            bool
	}{
		{peer.Policy{}, "east", "shop", true},
		{peer.Policy{}, "east", "kube-system", false},
		{peer.Policy{}, "east", "kube-public", false},
		{peer.Policy{}, "east", "kubernetes-dashboard", true},
		{peer.Policy{}, "east", "default", false},
		{peer.Policy{}, "east", "fleetling-system", false},
		{rules, "east", "shop", true},
		{rules, "north", "shop", false},
		{rules, "north", "open", true},
		{rules, "east", "default", true},
		{rules, "west", "default", false},
		{rules, "east", "shut", false},
		{rules, "east", "other", false},
		{wide, "east", "other", true},
		{wide, "west", "other", false},
		{wide, "east", "kube-system", false},
		{wide, "east", "shut", false},
	} {
		got := tc.policy.Refuses(tc.cluster, tc.namespace)
		assert.Equal(t, tc.allowed, got == "", "%v", tc)
		if !tc.allowed {
			assert.Contains(t, got, tc.cluster)
			assert.Contains(t, got, tc.namespace)
		}
	}
}

func TestAnExportThatThePolicyRefusesIsNamedAndTheOthersShared(t *testing.T) {
	w, _ := honest(t)
	w.SetPolicy(peer.Policy{Rules: []peer.Rule{{Namespace: "shop", Clusters: []string{"west"}}}})
	assert.Empty(t, w.Of(cart))
	view := w.view("east")
	assert.Equal(t, 1, view.RefusedExports)
	assert.Equal(t, peer.NamespaceRefused, view.Refused[0].Reason)
	assert.Zero(t, view.Imported)
	w.SetPolicy(peer.Policy{})
	assert.Len(t, w.Of(cart), 1)
}

func TestANamespaceThatAppearsIsServedWithoutTheRecordBeingGotAgain(t *testing.T) {
	w, east := honest(t)
	bank := peer.Service{Namespace: "bank", Name: "till"}
	east.exports(bank, "10.1.0.7")
	w.take(east, east.next())
	assert.Equal(t, 2, w.view("east").Exports)
	assert.Equal(t, 1, w.view("east").Imported)
	assert.Empty(t, w.Parts("east"), "parts of no interest are not wanted")

	w.Follow("bank")
	assert.Equal(t, []string{"east"}, w.Pending())
	wanted := w.Parts("east")
	require.Len(t, wanted, 1)
	out := w.TakePart("east", wanted[0], east.parts[wanted[0]])
	assert.Equal(t, []peer.Service{bank}, out.Changed)
	assert.Empty(t, w.Pending())
	assert.Equal(t, map[string][]string{"east": {"10.1.0.7"}}, addresses(w.Of(bank)))

	out = w.Forget("bank")
	assert.Equal(t, []peer.Service{bank}, out.Changed)
	assert.Empty(t, w.Of(bank))
	assert.Len(t, w.Of(cart), 1)
	w.Follow("bank")
	assert.Len(t, w.Parts("east"), 1, "what nothing names is forgotten")
}

func TestAnExportKeepsItsLastVersionUntilAllPartsOfTheNextAreThere(t *testing.T) {
	w, east := honest(t)
	east.exports(cart, "10.1.0.3")
	sealed := east.next()
	assert.Empty(t, w.Take("east", sealed, w.now).Changed)
	assert.Equal(t, map[string][]string{"east": {"10.1.0.1", "10.1.0.2"}}, addresses(w.Of(cart)), "whoever hides a part takes nothing away")
	assert.Equal(t, 1, w.view("east").Pending)
	wanted := w.Parts("east")[0]
	out := w.TakePart("east", wanted, []byte("other bytes"))
	assert.Equal(t, peer.Malformed, out.Problem.Reason)
	assert.Equal(t, []discovery.Digest{wanted}, w.Parts("east"), "still wanted")
	assert.Equal(t, []peer.Service{cart}, w.TakePart("east", wanted, east.parts[wanted]).Changed)
	assert.Equal(t, map[string][]string{"east": {"10.1.0.3"}}, addresses(w.Of(cart)))
	assert.Empty(t, w.TakePart("east", wanted, east.parts[wanted]).Changed, "not wanted again")
	assert.Zero(t, w.TakePart("nobody", wanted, nil).Problem)
}

func TestOnlyTheChangedPartIsWanted(t *testing.T) {
	w, east := honest(t)
	db := peer.Service{Namespace: "shop", Name: "db"}
	east.exports(db, "10.1.1.1")
	w.take(east, east.next())
	east.exports(cart, "10.1.0.1")
	w.Take("east", east.next(), w.now)
	assert.Len(t, w.Parts("east"), 1)
}

// names makes the cart consist of these parts.
func (c *cluster) names(parts ...[]byte) {
	export := &c.says.Exports[0]
	export.Parts = nil
	for _, part := range parts {
		digest := discovery.DigestOf(part)
		c.parts[digest] = part
		export.Parts = append(export.Parts, digest)
	}
}

func full(t *testing.T, block, count int) []byte {
	t.Helper()
	slice := record.Slice{AddressType: "IPv4"}
	for i := range count {
		slice.Endpoints = append(slice.Endpoints, record.Endpoint{Address: fmt.Sprintf("10.1.%d.%d", block*4+i/250, i%250)})
	}
	part, err := slice.Encode()
	require.NoError(t, err)
	return part
}

func TestAPartThatLiesIsRefusedOnceAndTheLastGoodEndpointsStay(t *testing.T) {
	for name, tc := range map[string]struct {
		parts [][]byte
		want  peer.Reason
	}{
		"no JSON":                 {[][]byte{[]byte("lies")}, peer.Malformed},
		"a name for an address":   {[][]byte{[]byte(`{"addressType":"FQDN"}`)}, peer.Malformed},
		"too many bytes":          {[][]byte{[]byte(strings.Repeat(" ", record.MaxPart+1))}, peer.TooLarge},
		"1,001 endpoints, in two": {[][]byte{full(t, 0, 1000), full(t, 5, 1)}, peer.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			w, east := honest(t)
			good := east.says.Exports[0].Parts
			east.names(tc.parts...)
			require.Zero(t, w.take(east, east.next()).Problem)
			assert.Equal(t, tc.want, w.view("east").Problem.Reason)
			assert.Equal(t, map[string][]string{"east": {"10.1.0.1", "10.1.0.2"}}, addresses(w.Of(cart)))
			assert.Empty(t, w.Parts("east"), "not wanted again")
			assert.Empty(t, w.Pending())
			w.take(east, east.next())
			assert.Equal(t, tc.want, w.view("east").Problem.Reason, "a renewal doesn't mend it")

			east.says.Exports[0].Parts = good
			w.take(east, east.next())
			assert.Zero(t, w.view("east").Problem)
		})
	}
}

func TestAMemberHasAtMostTwentyThousandEndpoints(t *testing.T) {
	w, east := honest(t)
	for i := range 21 {
		east.exports(peer.Service{Namespace: "shop", Name: fmt.Sprintf("s%d", i)})
		part := full(t, i, 1000)
		digest := discovery.DigestOf(part)
		east.parts[digest] = part
		east.says.Exports[len(east.says.Exports)-1].Parts = []discovery.Digest{digest}
	}
	w.take(east, east.next())
	assert.Equal(t, peer.TooLarge, w.view("east").Problem.Reason)
	count := 0
	for _, service := range w.Services() {
		for _, all := range addresses(w.Of(service)) {
			count += len(all)
		}
	}
	assert.Equal(t, 19_002, count)
}
