package apply

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAKeyIsReadAsItWasWritten(t *testing.T) {
	for name, id := range map[string]ID{
		"namespaced, of the core group": {Kind: "ConfigMap", Namespace: "web", Name: "a.b-c"},
		"cluster-scoped":                {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:node"},
		"both":                          {Group: "apps", Kind: "Deployment", Namespace: "web", Name: "d"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseKey(id.Key())
			require.NoError(t, err)
			assert.Equal(t, id, got)
		})
	}
}

func TestAKeyThatIsNoneIsRefused(t *testing.T) {
	for name, key := range map[string]string{
		"nothing":                       "",
		"too few parts":                 "/ConfigMap/web",
		"too many parts":                "/ConfigMap/web/a/status",
		"no kind":                       "//web/a",
		"no name":                       "/ConfigMap/web/",
		"a way up as the name":          "/ConfigMap/web/..",
		"a way up as the namespace":     "/ConfigMap/../a",
		"a place as the name":           "/ConfigMap/web/.",
		"an escape in the name":         "/ConfigMap/web/a%2Fb",
		"a line break of another world": "/ConfigMap/web/a\r",
		"a name without an end":         "/ConfigMap/web/" + strings.Repeat("a", 254),
		"bytes that are no text":        "/ConfigMap/web/\xff",
		"a namespace that is no label":  "/ConfigMap/We b/a",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseKey(key)
			require.Error(t, err)
		})
	}
}

func TestIdentitiesAreOrderedPartByPart(t *testing.T) {
	want := []ID{
		{Kind: "ConfigMap", Namespace: "a", Name: "z"},
		{Kind: "ConfigMap", Namespace: "b", Name: "a"},
		{Kind: "ConfigMap", Namespace: "b", Name: "b"},
		{Kind: "Secret", Namespace: "a", Name: "a"},
		{Group: "apps", Kind: "ConfigMap", Namespace: "a", Name: "a"},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, ID.Compare)
	assert.Equal(t, want, got)
}

func FuzzParseKey(f *testing.F) {
	for _, key := range []string{"/ConfigMap/web/a", "apps/Deployment/web/d", "rbac.authorization.k8s.io/ClusterRole//system:node", "///", "?/a/b/c", "/K/../..", "/K//a\n"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		id, err := ParseKey(key)
		if err != nil {
			return
		}
		require.Equal(t, key, id.Key())
		require.NotEmpty(t, id.Kind)
		require.NotContains(t, []string{"", ".", ".."}, id.Name)
		require.NotContains(t, id.Namespace+id.Name, "\n")
		resource := Resource{Namespaced: id.Namespace != ""}
		resource.Version, resource.Resource = "v1", "things"
		want := "/api/v1/things/" + id.Name
		if resource.Namespaced {
			want = "/api/v1/namespaces/" + id.Namespace + "/things/" + id.Name
		}
		require.Equal(t, want, path(resource, id))
	})
}
