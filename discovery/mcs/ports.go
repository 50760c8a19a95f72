package mcs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fleetling/fleetling/discovery/record"
)

// socket is what a client connects to.
type socket struct {
	protocol string
	port     int32
}

func socketOf(p record.Port) socket { return socket{p.Protocol, p.Port} }

// union is the ports of all shares. No two have one name, and no two are one
// socket: a Service could not have them.
type union struct {
	all []record.Port
	at  map[socket]int
}

// unite goes through the shares in order of precedence. A port is added if its
// name is free, and then its socket. A port whose name stands for another socket
// is not exposed; one whose socket has another name is exposed under that one.
func unite(shares []Share) union {
	u := union{at: map[socket]int{}}
	taken := map[string]bool{}
	for _, s := range shares {
		for _, p := range s.Export.Ports {
			if _, there := u.at[socketOf(p)]; there || taken[p.Name] {
				continue
			}
			u.at[socketOf(p)] = len(u.all)
			u.all = append(u.all, p)
			taken[p.Name] = true
		}
	}
	// A Service may have a port without a name only if it has no other.
	if len(u.all) > 1 && taken[""] {
		i := slices.IndexFunc(u.all, func(p record.Port) bool { return p.Name == "" })
		name := strings.ToLower(u.all[i].Protocol) + "-" + strconv.Itoa(int(u.all[i].Port))
		for taken[name] {
			name += "-x"
		}
		u.all[i].Name = name
	}
	return u
}

// names maps the names of a member's ports to those of the union. A port that is
// not in the map must get no traffic: behind its name the union has another
// socket.
func (u union) names(ports []record.Port) map[string]string {
	names := make(map[string]string, len(ports))
	for _, p := range ports {
		if i, there := u.at[socketOf(p)]; there {
			names[p.Name] = u.all[i].Name
		}
	}
	return names
}

// rename gives what listens in a slice the names of the union, and leaves out
// what the union doesn't expose.
func rename(ports []record.SlicePort, names map[string]string) []record.SlicePort {
	var renamed []record.SlicePort
	for _, p := range ports {
		if name, exposed := names[p.Name]; exposed {
			p.Name = name
			renamed = append(renamed, p)
		}
	}
	return renamed
}

// samePorts compares two sets of ports.
func samePorts(a, b []record.Port) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(p record.Port) bool { return !slices.Contains(b, p) })
}
