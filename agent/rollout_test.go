package agent

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
		ready   map[string]standing
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
			ready: map[string]standing{"a": {ready: true}},
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

func TestHowAnAddOnStands(t *testing.T) {
	report := apply.Report{AddOns: []apply.AddOnReport{
		{Name: "new", Selected: true, Objects: 1, Ready: 1},
		{Name: "old", Selected: true, Objects: 1, Ready: 1},
		{Name: "starting", Selected: true, Objects: 2, Ready: 1},
		{Name: "late", Selected: true, Objects: 2, Ready: 1},
		{Name: "failed", Selected: true, Objects: 1, Failures: []apply.Failure{{}}},
		{Name: "held", Selected: true, Hold: &apply.Hold{}},
		{Name: "broken", Selected: true, Objects: 1},
		{Name: "blocked", Selected: true, Objects: 1},
	}}
	var o outcome
	o.report, o.now, o.since = report, time.Unix(100, 0), map[string]started{"starting": {at: time.Unix(95, 0)}}
	for _, name := range []string{"new", "starting", "late", "failed", "held", "blocked"} {
		o.found.targets = append(o.found.targets, aim(made(name, "2")))
		o.rollout.active = append(o.rollout.active, made(name, "2"))
	}
	o.found.targets = append(o.found.targets, aim(made("old", "2")), broken("broken"))
	o.rollout.active = append(o.rollout.active, made("old", "1"), made("broken", "1"))
	o.rollout.blocked = map[string]string{"blocked": "add-on failed to be ready"}
	for i := range o.rollout.active {
		o.rollout.active[i].Timeout = 10 * time.Second
	}
	assert.Equal(t, map[string]standing{
		"new": {ready: true}, "old": {}, "starting": {busy: true}, "late": {}, "failed": {}, "held": {}, "broken": {}, "blocked": {},
	}, o.standings())
}

// itself is the add-on with the agent's own Deployment.
func itself(version string, dependsOn ...string) content {
	c := made("fleetling", version, dependsOn...)
	c.objects = append(c.objects, apply.Object{
		GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "fleetling-system", Name: "fleetling",
	})
	return c
}

func TestTheAgentItselfIsUpgradedLast(t *testing.T) {
	ready, busy, settled := standing{ready: true}, standing{busy: true}, standing{}
	active := []content{itself("1"), made("a", "1"), made("b", "1")}
	next := func(a, b content) []target { return []target{aim(itself("2")), aim(a), aim(b)} }
	for name, c := range map[string]struct {
		targets []target
		seen    map[string]standing
		waits   string
	}{
		"while another begins":                       {next(made("a", "2"), made("b", "1")), map[string]standing{"a": ready, "b": ready}, "a"},
		"while another is under way":                 {next(made("a", "1"), made("b", "1")), map[string]standing{"a": ready, "b": busy}, "b"},
		"while nothing is known, after a restart":    {next(made("a", "1"), made("b", "1")), nil, "a"},
		"not for one that failed, or had its time":   {next(made("a", "1"), made("b", "1")), map[string]standing{"a": settled, "b": settled}, ""},
		"not for one that can't be rendered":         {append(next(made("a", "1"), made("b", "1"))[:2], broken("b")), map[string]standing{"a": ready}, ""},
		"not for one that waits for one that failed": {next(made("a", "1"), made("b", "2", "a")), map[string]standing{"a": settled, "b": ready}, ""},
		"not for one that waits for the agent":       {next(made("a", "1"), made("b", "2", "fleetling")), map[string]standing{"a": ready, "b": ready}, ""},
		"once all are ready":                         {next(made("a", "1"), made("b", "1")), map[string]standing{"a": ready, "b": ready}, ""},
		"before it is known by the one that waits":   {next(made("a", "1"), made("b", "2", "a")), map[string]standing{"a": ready, "b": ready}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			got := rollOut(active, c.targets, c.seen)
			if c.waits == "" {
				assert.NotContains(t, got.blocked, "fleetling")
				assert.Equal(t, "2", got.active[0].Revision)
				return
			}
			assert.Equal(t, "add-on "+c.waits+" to be ready, or to fail: the agent itself is upgraded last", got.blocked["fleetling"])
			assert.Equal(t, "1", got.active[0].Revision)
		})
	}
	t.Run("unchanged it never waits", func(t *testing.T) {
		assert.Empty(t, rollOut(active, []target{aim(itself("1")), aim(made("a", "2"))}, nil).blocked)
	})
}
