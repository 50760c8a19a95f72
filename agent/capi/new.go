package capi

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/fleetling/fleetling/sources/fleet"
)

// Wish is the cluster that New writes an entry for.
type Wish struct {
	Name   string
	Labels map[string]string
	// Pool is where the pod range of Bits is looked for, outside of Avoid and of
	// all ranges of the other entries.
	Pool  netip.Prefix
	Bits  int
	Avoid []netip.Prefix
	// Services is the cluster's service range.
	Services netip.Prefix
}

// Proposal is a new entry that the repository accepts.
type Proposal struct {
	// File is its path from the root of the repository, and Data its content.
	File string
	Data []byte
	Pods netip.Prefix
	// Undeclared are labels of the wish that fleetling.yaml does not declare:
	// nothing selects by them. Sorted.
	Undeclared []string
}

// New works out the entry of a new cluster and reads the repository back with it,
// as every agent would. Nothing is written. An entry or file that is there is an
// error (fs.ErrExist for the file).
func New(repository fs.FS, wish Wish) (Proposal, error) {
	if len(validation.IsDNS1123Label(wish.Name)) > 0 {
		return Proposal{}, fmt.Errorf("%.80q is no name of a cluster: one DNS label", wish.Name)
	}
	if !wish.Services.IsValid() {
		return Proposal{}, errors.New("no service range: give one, such as 10.96.0.0/12")
	}
	p := Proposal{File: path.Join("clusters", wish.Name+".yaml")}
	if _, err := fs.Stat(repository, p.File); !errors.Is(err, fs.ErrNotExist) {
		return Proposal{}, fmt.Errorf("%s: %w", p.File, cmp.Or(err, fs.ErrExist))
	}
	f, others, err := p.read(repository, wish)
	if err != nil {
		return Proposal{}, err
	}
	taken := slices.Concat(wish.Avoid, []netip.Prefix{wish.Services})
	for _, other := range others {
		taken = slices.Concat(taken, other.PodCIDRs, other.EndpointCIDRs, other.Services)
	}
	if p.Pods, err = free(wish.Pool, wish.Bits, taken); err != nil {
		return Proposal{}, err
	}
	if _, _, err = p.read(repository, wish); err != nil {
		return Proposal{}, err
	}
	for _, key := range slices.Sorted(maps.Keys(wish.Labels)) {
		if _, declared := f.Labels[key]; !declared && key != ClusterLabel {
			p.Undeclared = append(p.Undeclared, key)
		}
	}
	return p, nil
}

// read writes the entry, adds it to the repository in memory and reads that. It
// gives the entries of the others.
func (p *Proposal) read(repository fs.FS, wish Wish) (fleet.Fleet, []Entry, error) {
	var err error
	if p.Data, err = wish.entry(p.Pods); err != nil {
		return fleet.Fleet{}, nil, err
	}
	added, err := txtar.FS(&txtar.Archive{Files: []txtar.File{{Name: p.File, Data: p.Data}}})
	if err != nil {
		return fleet.Fleet{}, nil, fmt.Errorf("%s: %w", p.File, err)
	}
	both := overlay{FS: repository, added: added, file: p.File}
	f, err := fleet.Read(both)
	if err != nil {
		return fleet.Fleet{}, nil, err
	}
	own, known := f.Cluster(wish.Name)
	if !known {
		return fleet.Fleet{}, nil, fmt.Errorf("clusters.files of fleetling.yaml does not match %s: add \"clusters/*.yaml\" there", p.File)
	}
	entries, err := Entries(both, f.Clusters)
	problems := []error{err, own.Problem}
	for _, other := range f.Clusters {
		if other.Problem != nil && other.Name != wish.Name {
			problems = append(problems, fmt.Errorf("its ranges can't be told: %w", other.Problem))
		}
	}
	others := slices.DeleteFunc(entries, func(e Entry) bool { return e.Name == wish.Name })
	return f, others, errors.Join(problems...)
}

// entry writes the Cluster; without a pod range as long as there is none.
func (w Wish) entry(pods netip.Prefix) ([]byte, error) {
	labels := map[string]string{ClusterLabel: w.Name}
	for key, value := range w.Labels {
		if key == ClusterLabel && value != w.Name {
			return nil, fmt.Errorf("label %s must be the name, %s", ClusterLabel, w.Name)
		}
		labels[key] = value
	}
	network := map[string]any{"services": blocks(w.Services)}
	if pods.IsValid() {
		network["pods"] = blocks(pods)
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": capiGroup + "/v1beta2", "kind": "Cluster",
		"metadata": map[string]any{"name": w.Name, "labels": labels},
		"spec":     map[string]any{"clusterNetwork": network},
	})
	if err != nil {
		return nil, fmt.Errorf("entry of %s: %w", w.Name, err)
	}
	const head = "# To let Cluster API make it, add controlPlaneRef and infrastructureRef, or topology.\n"
	return append([]byte(head), text...), nil
}

func blocks(prefix netip.Prefix) map[string]any {
	return map[string]any{"cidrBlocks": []any{prefix.String()}}
}

// overlay is a file system with one file more.
type overlay struct {
	fs.FS
	added fs.FS
	file  string
}

// Open opens the added file, or what is below.
func (o overlay) Open(name string) (fs.File, error) {
	if name == o.file {
		return o.added.Open(name)
	}
	f, err := o.FS.Open(name)
	if errors.Is(err, fs.ErrNotExist) { // the folder of the added file may be new
		return o.added.Open(name)
	}
	return f, err
}

// ReadDir lists both, sorted.
func (o overlay) ReadDir(name string) ([]fs.DirEntry, error) {
	below, err := fs.ReadDir(o.FS, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	above, missing := fs.ReadDir(o.added, name)
	if err != nil && missing != nil {
		return nil, err
	}
	for _, entry := range above {
		if !slices.ContainsFunc(below, func(b fs.DirEntry) bool { return b.Name() == entry.Name() }) {
			below = append(below, entry)
		}
	}
	slices.SortFunc(below, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return below, nil
}
