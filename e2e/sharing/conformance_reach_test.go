package sharing_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// tries is how often in a row a connection must come to the right server.
const tries = 10

// nc asks the server at a name.
func nc(flags string, of corev1.IPFamily, name string, port int32) string {
	version := "-4"
	if of == corev1.IPv6Protocol {
		version = "-6"
	}
	return fmt.Sprintf("echo hi | nc -v -w 2 %s %s %s %d 2>&1", flags, version, name, port)
}

func unexportedIsOutOfReach(c *stage) {
	c.deploy(c.first)
	c.requests()
	// The server is there, and answers where it is.
	own := strings.TrimSuffix(c.first.name(hello), "clusterset.local") + "cluster.local"
	c.first.prints("from "+c.first.cluster.Name(), nc("", corev1.IPv4Protocol, own, 42))
	for _, s := range c.all {
		for range 20 {
			out, err := s.sh(c.Context(), nc("", corev1.IPv4Protocol, s.name(hello), 42))
			require.NoError(c, err)
			require.NotContains(c, out, "from ")
		}
		require.NoError(c, c.absent(c.Context(), s))
	}
}

// comesTo waits until connections from all clusters come to a server: kube-proxy
// may be a moment behind the slices of a conflict that has just been settled.
func (c *stage) comesTo(port int32, server string) {
	c.Helper()
	for _, s := range c.all {
		for _, of := range c.families(s) {
			script := nc("", of, s.name(hello), port)
			c.within(s, tries*lookupLimit, "to "+server, func(ctx context.Context) error {
				other, err := c.answered(ctx, s, script, server)
				if err == nil && other {
					err = fmt.Errorf("%s: another than %s answers", script, server)
				}
				return err
			})
		}
	}
}

// leads wants so many connections in a row to come to a server, from all
// clusters. One that nobody answers is tried again, as under load one may be; an
// answer of anybody else is a failure.
func (c *stage) leads(port int32, server string) {
	c.Helper()
	for _, s := range c.all {
		for _, of := range c.families(s) {
			script := nc("", of, s.name(hello), port)
			other := false
			c.within(s, tries*lookupLimit, script, func(ctx context.Context) error {
				var err error
				for n := 0; n < tries && err == nil; n++ {
					other, err = c.answered(ctx, s, script, server)
				}
				if other {
					return nil
				}
				return err
			})
			require.False(c, other, "%s in %s: only %s may answer", script, s.cluster.Name(), server)
		}
	}
}

// answered is an error unless a line of what a script prints is the server's, and
// says whether there is one of another server.
func (*stage) answered(ctx context.Context, s *side, script, server string) (other bool, _ error) {
	out, err := s.sh(ctx, script)
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line == server {
			return false, nil
		}
		other = other || strings.HasPrefix(line, "from ")
	}
	return other, fmt.Errorf("%s: no line %q in %q", script, server, out)
}

// server is what a cluster's one Pod answers with.
func (c *stage) server(s *side) string {
	c.Helper()
	return "from " + s.cluster.Name() + " " + addresses(c.local(s, corev1.IPv4Protocol, 1))[0]
}

func exportIsReached(c *stage) {
	c.deploy(c.first)
	c.requests()
	c.exportWith(c.first, nil)
	server := c.server(c.first)
	for _, s := range c.all {
		for _, of := range c.families(s) {
			for _, flags := range []string{"", "-u"} {
				script := nc(flags, of, s.name(hello), 42)
				c.within(s, lookupLimit, script, func(ctx context.Context) error {
					_, err := c.answered(ctx, s, script, server)
					return err
				})
			}
		}
	}
}

func onlyTheExportedIsReached(c *stage) {
	c.deploy(c.first, spread)
	c.deploy(c.second, spread)
	c.requests()
	c.exportWith(c.first, nil)
	c.server(c.second)
	for _, s := range c.all {
		c.imported(s, exportedBy(c.first))
	}
	c.leads(42, c.server(c.first))
}

func onePortNameTwoNumbers(c *stage) {
	other := corev1.ServicePort{Name: "tcp", Port: 4242, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(42)}
	c.requests()
	c.dispute(service(spread), service(spread, ports(other)))
	c.settled()
	c.comesTo(42, c.server(c.first))
	c.leads(42, c.server(c.first))
}

func twoPortNames(c *stage) {
	other := corev1.ServicePort{Name: "other", Port: 4242, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(42)}
	c.requests()
	c.dispute(service(spread), service(spread, ports(other)))
	c.settled()
	c.leads(42, c.server(c.first))
	c.leads(4242, c.server(c.second))
}

// settled waits until both exports are part of the import everywhere.
func (c *stage) settled() {
	c.Helper()
	c.server(c.second)
	for _, s := range c.all {
		c.imported(s, exportedBy(c.first, c.second))
	}
}
