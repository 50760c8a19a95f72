package capi

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/fleet"
)

const (
	// ClusterLabel is the label that chooses a cluster's identity: its value is
	// the cluster's name.
	ClusterLabel = "fleetling.dev/cluster"
	capiGroup    = "cluster.x-k8s.io"
)

// Entry is a cluster entry with what only the management cluster needs of it.
type Entry struct {
	fleet.Cluster
	// Namespace is that of the Cluster in the management cluster; "" when the
	// entry names none.
	Namespace string
	// Labelled is the value of ClusterLabel, "" when there is none.
	Labelled string
	// Services are the ranges of spec.clusterNetwork.services.
	Services []netip.Prefix
	// APIServer is the URL of spec.controlPlaneEndpoint; "" when the entry leaves
	// it to the infrastructure.
	APIServer string
}

// Entries reads the files of clusters again, for what the fleet does not keep,
// in their order.
func Entries(fsys fs.FS, clusters []fleet.Cluster) ([]Entry, error) {
	files := map[string][]Object{}
	entries := make([]Entry, len(clusters))
	for at, cluster := range clusters {
		objects, known := files[cluster.File]
		if !known {
			data, err := fs.ReadFile(fsys, cluster.File)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", cluster.File, err)
			}
			if objects, err = Read(cluster.File, data); err != nil {
				return nil, err
			}
			files[cluster.File] = objects
		}
		entry, err := newEntry(cluster, objects)
		if err != nil {
			return nil, err
		}
		entries[at] = entry
	}
	return entries, nil
}

func newEntry(cluster fleet.Cluster, objects []Object) (Entry, error) {
	for _, o := range objects {
		if !o.is(capiGroup, "Cluster") || o.GetName() != cluster.Name {
			continue
		}
		entry := Entry{Cluster: cluster, Namespace: o.GetNamespace(), Labelled: o.GetLabels()[ClusterLabel]}
		ranges, _, err := unstructured.NestedStringSlice(o.Object, "spec", "clusterNetwork", "services", "cidrBlocks")
		if err != nil {
			return Entry{}, entry.fault("spec.clusterNetwork.services.cidrBlocks must be a list of ranges")
		}
		for _, text := range ranges {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				return Entry{}, entry.fault("service range %.80q must be an address range such as 10.96.0.0/12", text)
			}
			entry.Services = append(entry.Services, prefix.Masked())
		}
		if entry.APIServer, err = apiServer(o); err != nil {
			return Entry{}, entry.fault("%w", err)
		}
		return entry, nil
	}
	return Entry{}, fmt.Errorf("%s: Cluster/%s is not there any more", cluster.File, cluster.Name)
}

// apiServer gives the URL of the control plane's endpoint, where one is named.
func apiServer(o Object) (string, error) {
	var endpoint struct {
		Host string `json:"host"`
		Port int32  `json:"port"`
	}
	given, found, err := unstructured.NestedMap(o.Object, "spec", "controlPlaneEndpoint")
	if err == nil && found {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(given, &endpoint)
	}
	switch {
	case err != nil:
		return "", errors.New("spec.controlPlaneEndpoint must be {host: NAME, port: NUMBER}")
	case endpoint.Host == "" || endpoint.Port == 0:
		return "", nil // Cluster API fills it in when the infrastructure is there
	}
	return "https://" + net.JoinHostPort(endpoint.Host, strconv.Itoa(int(endpoint.Port))), nil
}

func (e Entry) fault(format string, args ...any) error {
	return &sources.Error{Reason: sources.InvalidFleetFile, File: e.File, Line: e.Line, Object: "Cluster/" + e.Name, Err: fmt.Errorf(format, args...)}
}

// Choose gives the entries that a management cluster gives birth to: those of
// names, or all that carry ClusterLabel when there are no names; and the names of
// those that are left out for lack of it.
func Choose(entries []Entry, names []string) (chosen []Entry, leftOut []string, err error) {
	if len(names) > 0 {
		chosen, err = named(entries, names)
	} else {
		chosen, leftOut = labelled(entries)
	}
	problems := []error{err}
	for _, entry := range chosen {
		problems = append(problems, entry.Problem)
		if entry.Labelled != entry.Name {
			problems = append(problems, entry.fault("label %s is %.80q and must be the name, %s: the cluster would be told that it is another", ClusterLabel, entry.Labelled, entry.Name))
		}
	}
	if err == nil && len(chosen) == 0 {
		problems = append(problems, fmt.Errorf("no entry has label %s: there is no cluster to give birth to", ClusterLabel))
	}
	return chosen, leftOut, errors.Join(problems...)
}

func labelled(entries []Entry) (chosen []Entry, leftOut []string) {
	for _, entry := range entries {
		if entry.Labelled == "" {
			leftOut = append(leftOut, entry.Name)
			continue
		}
		chosen = append(chosen, entry)
	}
	return chosen, leftOut
}

// named keeps the order of entries, so that the order of names means nothing.
func named(entries []Entry, names []string) ([]Entry, error) {
	var chosen []Entry
	var problems []error
	unknown := slices.Compact(slices.Sorted(slices.Values(names)))
	for _, entry := range entries {
		at, asked := slices.BinarySearch(unknown, entry.Name)
		switch {
		case !asked:
			continue
		case entry.Labelled == "":
			problems = append(problems, entry.fault("label %s: %s is missing: add it here, and to the Cluster in the management cluster", ClusterLabel, entry.Name))
		default:
			chosen = append(chosen, entry)
		}
		unknown = slices.Delete(unknown, at, at+1)
	}
	for _, name := range unknown {
		problems = append(problems, fmt.Errorf("the repository has no entry for cluster %.80q", name))
	}
	return chosen, errors.Join(problems...)
}
