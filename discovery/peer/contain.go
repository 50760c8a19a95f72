package peer

import (
	"net/netip"
)

// Contain says why an endpoint address of a peer is not taken; "" is that it is.
// ranges are those of the peer's entry, ours are this cluster's own node, pod and
// service ranges: an endpoint there would lead to our own nodes and Pods past
// what guards them (CVE-2021-25740).
func Contain(addr netip.Addr, ranges, ours []netip.Prefix) Reason {
	switch {
	case !addr.IsValid() || addr.Zone() != "" || addr.Is4In6():
		return InvalidAddress
	case isSpecial(addr):
		return SpecialAddress
	case inAny(addr, ours):
		return InsideOurRanges
	case !inAny(addr, ranges):
		return OutsideRanges
	}
	return ""
}

// isSpecial is whether the address means something of its own wherever it is
// used. Ranges of an entry can't allow one.
func isSpecial(addr netip.Addr) bool {
	return addr.IsUnspecified() || addr.IsLoopback() || addr.IsMulticast() ||
		addr.IsLinkLocalUnicast() || isReserved(addr) || isMetadata(addr)
}

// isReserved: 0.0.0.0/8 is this network (RFC 1122), 240.0.0.0/4 is reserved (RFC
// 1112) with the broadcast address in it.
func isReserved(addr netip.Addr) bool {
	return addr.Is4() && (addr.As4()[0] == 0 || addr.As4()[0] >= 240)
}

// isMetadata is where clouds serve credentials, beside 169.254.169.254 and
// fe80::a9fe:a9fe, which are link-local: Alibaba's, Azure's, and AWS' for IPv6.
func isMetadata(addr netip.Addr) bool {
	switch addr.String() {
	case "100.100.100.200", "168.63.129.16", "fd00:ec2::254":
		return true
	}
	return false
}

func inAny(addr netip.Addr, ranges []netip.Prefix) bool {
	for _, prefix := range ranges {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}
