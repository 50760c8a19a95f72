package network

import (
	"context"
	"fmt"
)

// Link is the way between two sites, both directions.
type Link struct{ a, b *Site }

// To is the link to another site.
func (s *Site) To(other *Site) Link { return Link{s, other} }

// Cut drops all packets of the link, in silence.
func (l Link) Cut(ctx context.Context) error { return l.Loss(ctx, 100) }

// Heal takes away what Cut and Loss have done.
func (l Link) Heal(ctx context.Context) error { return l.Loss(ctx, 0) }

// Loss drops that percentage of the packets of each direction, by chance.
func (l Link) Loss(ctx context.Context, percent int) error {
	if percent < 0 || percent > 100 {
		return fmt.Errorf("loss of %d%%: from 0 to 100", percent)
	}
	for _, end := range []Link{l, {l.b, l.a}} {
		if err := nft(ctx, end.a.name, loss(end.name(), percent)); err != nil {
			return fmt.Errorf("loss from %s to %s: %w", l.b.name, l.a.name, err)
		}
	}
	return nil
}

// loss is the script that makes an interface lose what comes in. It comes
// before connection tracking, so that connections that stand lose it too.
func loss(name string, percent int) string {
	// The first line makes the second one work where there is no table yet.
	script := fmt.Sprintf("table inet %s\ndelete table inet %[1]s\n", name)
	if percent == 0 {
		return script
	}
	return script + fmt.Sprintf(`table inet %s {
	chain loss {
		type filter hook prerouting priority raw
		iifname %[1]q numgen random mod 100 <= %d drop
	}
}
`, name, percent-1)
}

// name is that of the interface to b in a.
func (l Link) name() string { return fmt.Sprintf("link%d", l.b.number) }

func (l Link) connect(ctx context.Context) error {
	back := Link{l.b, l.a}
	err := ip(ctx, "", fmt.Sprintf("link add %s netns %s type veth peer name %s netns %s", l.name(), l.a.name, back.name(), l.b.name))
	if err != nil {
		return err
	}
	for _, end := range []Link{l, back} {
		if err := ip(ctx, end.a.name,
			fmt.Sprintf("link set %s up", end.name()),
			// Asked for by ARP, the other end answers for any address of its site.
			fmt.Sprintf("route add %s via %s dev %s onlink src %s", end.b.pods, end.b.Address(), end.name(), end.a.Address())); err != nil {
			return err
		}
	}
	return nil
}
