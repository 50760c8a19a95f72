package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Inventory is what each add-on has put into the cluster, or is about to: the
// memory that pruning goes by. Identities only, by add-on.
type Inventory map[string]Set

// Set is the identities of one add-on.
type Set map[ID]Holding

// Holding tells how sure an entry of the inventory is.
type Holding bool

const (
	// Intended was written down before its first apply. Whether that apply
	// came about is not known, so the object may be somebody else's.
	Intended Holding = false
	// Held was applied.
	Held Holding = true
)

// Holds tells whether some add-on has applied the object.
func (inv Inventory) Holds(id ID) bool {
	for _, set := range inv {
		if set[id] == Held {
			return true
		}
	}
	return false
}

// Clone is a copy that shares nothing.
func (inv Inventory) Clone() Inventory {
	out := make(Inventory, len(inv))
	for name, set := range inv {
		out[name] = maps.Clone(set)
	}
	return out
}

// chunkBytes bounds one ConfigMap of the inventory: far below what etcd takes
// (1.5 MiB), so that a large add-on is several small writes.
const chunkBytes = 256 << 10

// intendedMark stands before the key of an entry that is only intended.
const intendedMark = "?"

// encode gives a set as the texts of its ConfigMaps: sorted keys, one a line.
// An empty set is no text.
func (s Set) encode() []string {
	var chunks []string
	var b strings.Builder
	for _, id := range sortedIDs(s) {
		line := id.Key() + "\n"
		if s[id] == Intended {
			line = intendedMark + line
		}
		if b.Len()+len(line) > chunkBytes {
			chunks = append(chunks, b.String())
			b.Reset()
		}
		b.WriteString(line)
	}
	if b.Len() > 0 {
		chunks = append(chunks, b.String())
	}
	return chunks
}

// decodeChunk adds a text's identities to the set. A line that does not parse
// is an error: half an inventory would be taken for a whole one.
func (s Set) decodeChunk(text string) error {
	for line := range strings.Lines(text) {
		key, intended := strings.CutPrefix(strings.TrimSuffix(line, "\n"), intendedMark)
		id, err := ParseKey(key)
		if err != nil {
			return fmt.Errorf("inventory: %w", err)
		}
		s[id] = s[id] || Holding(!intended) // twice is what a crash between two writes leaves
	}
	return nil
}

// names gives the add-ons of the inventory in order.
func (inv Inventory) names() []string {
	return slices.Sorted(maps.Keys(inv))
}
