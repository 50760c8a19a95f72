package agent

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/apply"
)

// made is a content whose one object says which version it is.
func made(name, version string, dependsOn ...string) content {
	return content{
		Name: name, Digest: "sha256:" + version, Revision: version, DependsOn: dependsOn,
		objects: []apply.Object{{Name: name + "-" + version}},
	}
}

func aim(c content) target {
	return target{name: c.Name, path: c.Path, dependsOn: c.DependsOn, content: c}
}

func broken(name string) target { return target{name: name, err: errors.New("does not render")} }

// picture is what of a rollout a case looks at.
type picture struct {
	Active  []string // name-version
	Objects map[string][]string
	Claims  map[string][]string
	Whole   map[string]bool
	All     bool
	Blocked map[string]string
}

func pictureOf(r rollout) picture {
	p := picture{Objects: map[string][]string{}, Claims: map[string][]string{}, Whole: map[string]bool{}, All: r.wanted.Whole, Blocked: r.blocked}
	for _, c := range r.active {
		p.Active = append(p.Active, c.Name+"-"+c.Revision)
	}
	for _, a := range r.wanted.AddOns {
		for _, o := range a.Objects {
			p.Objects[a.Name] = append(p.Objects[a.Name], o.Name)
		}
		for _, o := range a.Claims {
			p.Claims[a.Name] = append(p.Claims[a.Name], o.Name)
		}
		p.Whole[a.Name] = a.Whole
	}
	return p
}

func TestRollOut(t *testing.T) {
	for name, c := range map[string]struct {
		active  []content
		targets []target
		ready   map[string]bool
		want    picture
	}{
		"a first revision is rolled out": {
			targets: []target{aim(made("a", "1"))},
			want: picture{
				Active: []string{"a-1"}, Objects: map[string][]string{"a": {"a-1"}}, Claims: map[string][]string{},
				Whole: map[string]bool{"a": true}, All: true, Blocked: map[string]string{},
			},
		},
		"a selection that is not known changes nothing and allows no deletion": {
			active: []content{made("a", "1"), made("b", "1")},
			want: picture{
				Active: []string{"a-1", "b-1"}, Objects: map[string][]string{"a": {"a-1"}, "b": {"b-1"}}, Claims: map[string][]string{},
				Whole: map[string]bool{"a": false, "b": false},
			},
		},
		"a selection of nothing is something else than one that is not known": {
			active: []content{made("a", "1")}, targets: []target{},
			want: picture{Objects: map[string][]string{}, Claims: map[string][]string{}, Whole: map[string]bool{}, All: true, Blocked: map[string]string{}},
		},
		"an add-on that does not render stays as it was, and nothing is deleted anywhere": {
			active: []content{made("a", "1"), made("b", "1")}, targets: []target{broken("a"), aim(made("b", "2"))},
			want: picture{
				Active: []string{"a-1", "b-2"}, Objects: map[string][]string{"a": {"a-1"}, "b": {"b-2"}}, Claims: map[string][]string{},
				Whole: map[string]bool{"a": false, "b": true}, Blocked: map[string]string{},
			},
		},
		"a new add-on that does not render is nothing yet": {
			targets: []target{broken("a")},
			want: picture{
				Objects: map[string][]string{}, Claims: map[string][]string{}, Whole: map[string]bool{"a": false}, Blocked: map[string]string{},
			},
		},
		"a new content waits for what it depends on, and what it wants is claimed": {
			active: []content{made("a", "1"), made("b", "1", "a")}, targets: []target{aim(made("a", "2")), aim(made("b", "2", "a"))},
			want: picture{
				Active: []string{"a-2", "b-1"}, Objects: map[string][]string{"a": {"a-2"}, "b": {"b-1"}}, Claims: map[string][]string{"b": {"b-2"}},
				Whole: map[string]bool{"a": true, "b": false}, All: true, Blocked: map[string]string{"b": "add-on a to be ready"},
			},
		},
		"it goes on when that is ready": {
			active: []content{made("a", "2"), made("b", "1", "a")}, targets: []target{aim(made("a", "2")), aim(made("b", "2", "a"))},
			ready: map[string]bool{"a": true},
			want: picture{
				Active: []string{"a-2", "b-2"}, Objects: map[string][]string{"a": {"a-2"}, "b": {"b-2"}}, Claims: map[string][]string{},
				Whole: map[string]bool{"a": true, "b": true}, All: true, Blocked: map[string]string{},
			},
		},
		"an unchanged content never waits: a dependency gates what is new, not repairs": {
			active: []content{made("a", "1"), made("b", "1", "a")}, targets: []target{aim(made("a", "1")), aim(made("b", "1", "a"))},
			want: picture{
				Active: []string{"a-1", "b-1"}, Objects: map[string][]string{"a": {"a-1"}, "b": {"b-1"}}, Claims: map[string][]string{},
				Whole: map[string]bool{"a": true, "b": true}, All: true, Blocked: map[string]string{},
			},
		},
		"what is not selected any more is wanted by nobody": {
			active: []content{made("a", "1"), made("b", "1")}, targets: []target{aim(made("b", "1"))},
			want: picture{
				Active: []string{"b-1"}, Objects: map[string][]string{"b": {"b-1"}}, Claims: map[string][]string{},
				Whole: map[string]bool{"b": true}, All: true, Blocked: map[string]string{},
			},
		},
		"the fleet file's order is the order": {
			active: []content{made("a", "1"), made("b", "1")}, targets: []target{aim(made("b", "1")), aim(made("a", "1"))},
			want: picture{
				Active: []string{"b-1", "a-1"}, Objects: map[string][]string{"a": {"a-1"}, "b": {"b-1"}}, Claims: map[string][]string{},
				Whole: map[string]bool{"a": true, "b": true}, All: true, Blocked: map[string]string{},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, pictureOf(rollOut(c.active, c.targets, c.ready))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARolledOutContentCarriesTheNewestRevision(t *testing.T) {
	newer := made("a", "1")
	newer.Revision, newer.Path = "2", "moved"
	got := rollOut([]content{made("a", "1")}, []target{aim(newer)}, nil)
	require.Len(t, got.active, 1)
	assert.Equal(t, "2", got.active[0].Revision)
	assert.Equal(t, "moved", got.active[0].Path)
}

func TestAnAddOnIsReadyAtItsNewestContentOnly(t *testing.T) {
	report := apply.Report{AddOns: []apply.AddOnReport{
		{Name: "new", Selected: true, Objects: 1, Ready: 1},
		{Name: "old", Selected: true, Objects: 1, Ready: 1},
		{Name: "unwell", Selected: true, Objects: 2, Ready: 1},
		{Name: "failed", Selected: true, Failures: []apply.Failure{{}}},
		{Name: "held", Selected: true, Hold: &apply.Hold{}},
		{Name: "broken", Selected: true},
	}}
	targets := []target{aim(made("new", "2")), aim(made("old", "2")), aim(made("unwell", "2")), aim(made("failed", "2")), aim(made("held", "2")), broken("broken")}
	active := []content{made("new", "2"), made("old", "1"), made("unwell", "2"), made("failed", "2"), made("held", "2"), made("broken", "1")}
	got := readyAddOns(targets, active, report)
	assert.Equal(t, map[string]bool{"new": true, "unwell": false, "failed": false, "held": false}, got)
}
