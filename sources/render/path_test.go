package render

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLocalPathsLeadWhereTheySay(t *testing.T) {
	cases := map[string]struct{ dir, written, want string }{
		"a file":                         {"web", "a.yaml", "web/a.yaml"},
		"a file below":                   {"web", "sub/a.yaml", "web/sub/a.yaml"},
		"a folder with a slash":          {"web", "sub/", "web/sub"},
		"this folder":                    {"web", ".", "web"},
		"another folder":                 {"web/overlay", "../base", "web/base"},
		"the root":                       {"web", "..", "."},
		"from the root":                  {".", "web", "web"},
		"a dot in front":                 {"web", "./a:b.yaml", "web/a:b.yaml"},
		"an at sign in a file":           {"web", "icon@2x.png", "web/icon@2x.png"},
		"an at sign further down":        {"web", "icons/a@b/c.png", "web/icons/a@b/c.png"},
		"a host that kustomize does not": {"web", "gitlab.com/x", "web/gitlab.com/x"},
		"spaces and letters":             {"web", "größe 1.yaml", "web/größe 1.yaml"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := local(c.dir, c.written)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestPathsThatCouldBeFetchedAreRemote(t *testing.T) {
	for _, written := range []string{
		"https://example.com/a.yaml", "HTTPS://example.com", "http:example.com/x", "https://%zz/x", "file:///etc", "ssh://host/x",
		"git::x/y", "git@github.com:org/repo", "user@host:org/repo", "user@host/org/repo", "github.com/org/repo", "GitHub.com:org/repo",
		"org/repo?ref=main", "dir//sub", "a:b.yaml",
	} {
		assert.True(t, remote(written), written)
		_, err := local("web", written)
		require.Error(t, err, written)
		assert.NotContains(t, err.Error(), written, "a URL may hold a password")
	}
	for _, written := range []string{"a.yaml", "../base", "./a:b", "icon@2x.png", "@scope/x", "a@b", "github.computer/x"} {
		assert.False(t, remote(written), written)
	}
}

func TestPathsThatLeadNowhereAreRefused(t *testing.T) {
	for _, written := range []string{"", "/etc", "..", "../x", "web/../../x", "a\nb", "a\x00b", "caf\xe9", "base..v2", "a - ../b"} {
		_, err := local(".", written)
		assert.Error(t, err, "%q", written)
	}
}
