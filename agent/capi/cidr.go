package capi

import (
	"fmt"
	"net/netip"
)

// free gives the first range of bits in pool that overlaps none of taken.
func free(pool netip.Prefix, bits int, taken []netip.Prefix) (netip.Prefix, error) {
	if !pool.IsValid() || bits < pool.Bits() || bits > pool.Addr().BitLen() {
		return netip.Prefix{}, fmt.Errorf("no range of /%d is in pool %s", bits, pool)
	}
	pool = pool.Masked()
	candidate := netip.PrefixFrom(pool.Addr(), bits)
	// Each round leaves one of taken behind for good.
	for range len(taken) + 1 {
		last, fits := behind(candidate, taken)
		if fits {
			return candidate, nil
		}
		next := last.Next()
		if !next.IsValid() || !pool.Contains(next) {
			break
		}
		candidate = netip.PrefixFrom(next, bits)
	}
	return netip.Prefix{}, fmt.Errorf("pool %s has no free range of /%d: give another pool, or a smaller range", pool, bits)
}

// behind gives the last address of candidate or, if that comes later, of a range
// that overlaps it; fits says that none does.
func behind(candidate netip.Prefix, taken []netip.Prefix) (last netip.Addr, fits bool) {
	last, fits = lastOf(candidate), true
	for _, other := range taken {
		if !other.Overlaps(candidate) {
			continue
		}
		fits = false
		if end := lastOf(other); last.Less(end) {
			last = end
		}
	}
	return last, fits
}

func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}
