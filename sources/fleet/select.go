package fleet

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/fleetling/fleetling/sources"
)

// Selection is what belongs on one cluster.
type Selection struct {
	// Cluster and ClusterSet are the identity's.
	Cluster, ClusterSet string
	// Listed says that the repository has an entry for this cluster.
	Listed bool
	// Labels are the declared ones that this cluster has, sorted by key.
	Labels []Label
	// Differs has a sentence for each declared label, sorted by key, in which
	// the identity differs from the entry. The entry's value was taken.
	Differs []string
	// AddOns stand in file order. None is a selection too: no `when` matched.
	AddOns []AddOn
	// Digest is "sha256:" and 64 lower-case hexadecimal digits over the
	// cluster, its ClusterSet and the add-ons without their lines.
	Digest string
}

// Origin says who gave a label.
type Origin string

const (
	// OriginEntry is the cluster entry in the repository.
	OriginEntry Origin = "entry"
	// OriginIdentity is what the cluster was told at birth.
	OriginIdentity Origin = "identity"
)

// Label is a label of this cluster.
type Label struct {
	Key, Value string
	Origin     Origin
}

// AddOn is an add-on selected for this cluster, its templates resolved.
type AddOn struct {
	Name string
	// Path is a folder in the tree.
	Path string
	// Components are folders in the tree, in the order in which they are laid
	// over Path.
	Components []string
	// Absent are the optional components that are not there.
	Absent []string
	// DependsOn are those that are selected on this cluster too.
	DependsOn []string
	// Substitute gives a value by variable name; nil when there are none.
	Substitute map[string]string
	// Timeout is positive.
	Timeout time.Duration
	// File and Line are where the add-on is declared.
	File string
	Line int
}

// Select works out what belongs on the cluster id. fsys is the tree, to see
// which paths are there. listed says that an earlier verified revision had an
// entry for this cluster: then a missing one is NotListed.
func (f Fleet) Select(fsys fs.FS, id Identity, listed bool) (Selection, error) {
	found := &problems{}
	member, err := f.member(id, listed)
	if err != nil {
		return Selection{}, err
	}
	selection := Selection{
		Cluster: id.Name, ClusterSet: id.ClusterSet,
		Listed: member.origin == OriginEntry, Labels: member.list(), Differs: f.differs(member, id),
	}
	r := resolver{fsys: fsys, member: member, problems: found}
	chosen := map[string]bool{}
	for _, rule := range f.AddOns {
		chosen[rule.Name] = member.matches(rule.When)
	}
	for _, rule := range f.AddOns {
		if chosen[rule.Name] {
			selection.AddOns = append(selection.AddOns, r.addOn(rule, chosen))
		}
	}
	if err := found.err(); err != nil {
		return Selection{}, err
	}
	selection.Digest = digest(selection)
	return selection, nil
}

// member is this cluster as selection sees it.
type member struct {
	name   string
	labels map[string]string
	origin Origin
	// home says, in words, where the labels are written.
	home string
}

func (m member) list() []Label {
	var list []Label
	for _, key := range slices.Sorted(maps.Keys(m.labels)) {
		list = append(list, Label{Key: key, Value: m.labels[key], Origin: m.origin})
	}
	return list
}

func (m member) matches(selector labels.Selector) bool {
	return selector == nil || selector.Matches(labels.Set(m.labels))
}

// member finds the authority for the cluster's labels.
func (f Fleet) member(id Identity, listed bool) (member, error) {
	found := &problems{}
	at := place{file: fleetFile, line: f.clustersLine, object: "Cluster/" + id.Name}
	entry, known := f.Cluster(id.Name)
	switch {
	case id.Name == "":
		found.add(place{}, fault(sources.IdentityMissing, "this cluster has not been told its name"))
	case id.ClusterSet != f.ClusterSet:
		found.add(at.on(f.clusterSetLine), fault(sources.IdentityDiffers,
			"the identity says clusterSet %q, the file %q: this is another fleet's repository, or another's identity", id.ClusterSet, f.ClusterSet))
	case known && entry.Problem != nil:
		return member{}, entry.Problem
	case known:
		home := fmt.Sprintf("the entry %s:%d", entry.File, entry.Line)
		return member{name: id.Name, labels: entry.Labels, origin: OriginEntry, home: home}, nil
	case listed:
		found.add(at, fault(sources.NotListed, "this cluster had an entry and has none any more: put it back"))
	case f.Unlisted == UnlistedDeny:
		found.add(at, fault(sources.NotListed, "this cluster has no entry, and unlisted is %s: add one", UnlistedDeny))
	default:
		own := f.declared(id.Labels)
		checkLabels(f.Labels, own, "the identity", func(key string) place { return at.on(f.Labels[key].Line) }, found)
		return member{name: id.Name, labels: own, origin: OriginIdentity, home: "the identity"}, found.err()
	}
	return member{}, found.err()
}

// declared keeps the labels that fleetling.yaml declares.
func (f Fleet) declared(all map[string]string) map[string]string {
	own := map[string]string{}
	for key := range f.Labels {
		if value, ok := all[key]; ok {
			own[key] = value
		}
	}
	return own
}

func (f Fleet) differs(m member, id Identity) []string {
	var sentences []string
	if m.origin != OriginEntry {
		return nil
	}
	told := f.declared(id.Labels)
	for _, key := range slices.Sorted(maps.Keys(f.Labels)) {
		own, has := m.labels[key]
		other, hasOther := told[key]
		if has != hasOther || own != other {
			sentences = append(sentences, fmt.Sprintf("label %q: %s says %s, the identity %s; the entry counts",
				key, m.home, say(own, has), say(other, hasOther)))
		}
	}
	return sentences
}

func say(value string, has bool) string {
	if !has {
		return "nothing"
	}
	return fmt.Sprintf("%.80q", value)
}
