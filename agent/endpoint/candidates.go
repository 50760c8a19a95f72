package endpoint

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
)

// Origin is whose word an address is.
type Origin string

// The origins, in the order in which they are believed.
const (
	Environment Origin = "environment"
	Identity    Origin = "identity"
	Node        Origin = "node"
	InCluster   Origin = "in-cluster"
	Remembered  Origin = "remembered"
)

// Hints are what is known of the address. Each may be empty.
type Hints struct {
	// Environment and Identity are URLs that a person gave.
	Environment, Identity string
	// NodeIP is the address of the node that this process runs on: of a control
	// plane node the API server's too.
	NodeIP string
	// InCluster is the URL of the Service kubernetes, or that of a kubeconfig.
	InCluster string
	// Remembered is the URL that answered last time.
	Remembered string
}

// Candidate is an address to ask.
type Candidate struct {
	URL    string
	Origin Origin
}

// String is for people.
func (c Candidate) String() string { return fmt.Sprintf("%s (%s)", c.URL, c.Origin) }

// nodePort is where kubeadm has the API server listen.
const nodePort = "6443"

// Candidates gives the addresses of the hints, in order, each once. The error
// tells of hints that are no address; the others are good.
func Candidates(h Hints) ([]Candidate, error) {
	var all []Candidate
	var problems []error
	add := func(origin Origin, text string) {
		if text == "" || slices.ContainsFunc(all, func(c Candidate) bool { return c.URL == text }) {
			return
		}
		if err := check(text); err != nil {
			problems = append(problems, fmt.Errorf("address of the API server by %s: %w", origin, err))
			return
		}
		all = append(all, Candidate{text, origin})
	}
	add(Environment, h.Environment)
	add(Identity, h.Identity)
	if h.NodeIP != "" {
		if ip, err := netip.ParseAddr(h.NodeIP); err != nil {
			problems = append(problems, fmt.Errorf("address of the node: %w", err))
		} else {
			add(Node, "https://"+net.JoinHostPort(ip.String(), nodePort))
		}
	}
	if h.InCluster != "" && !slices.ContainsFunc(all, func(c Candidate) bool { return c.URL == h.InCluster }) {
		all = append(all, Candidate{h.InCluster, InCluster}) // as it is: client-go made it
	}
	add(Remembered, h.Remembered)
	return all, errors.Join(problems...)
}

func check(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("write it as https://HOST:PORT")
	}
	return nil
}

// First gives the first candidate whose answer is nil.
func First(candidates []Candidate, answers []error) (Candidate, bool) {
	for i, c := range candidates {
		if answers[i] == nil {
			return c, true
		}
	}
	return Candidate{}, false
}
