package peer

import (
	"cmp"
	"maps"
	"slices"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func has[K comparable, V any](m map[K]V, key K) bool {
	_, found := m[key]
	return found
}

func mark[K comparable](set map[K]struct{}, keys []K) {
	for _, key := range keys {
		set[key] = struct{}{}
	}
}
