package render

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKustomizeSeesWhatWasScannedAndNothingElse(t *testing.T) {
	v := view{
		files: map[string][]byte{"web/a.yaml": []byte("a"), "real/b.yaml": []byte("b")},
		dirs:  map[string]string{"web": "web", "web/link": "real", "real": "real", ".": "."},
		root:  []byte("root"),
	}
	data, err := v.ReadFile("/repository/web/../web/a.yaml")
	require.NoError(t, err)
	assert.Equal(t, "a", string(data))
	data, err = v.ReadFile("/assembly/kustomization.yaml")
	require.NoError(t, err)
	assert.Equal(t, "root", string(data))
	dir, base, err := v.CleanedAbs("/repository/web/link")
	require.NoError(t, err)
	assert.Equal(t, "/repository/real", dir.String(), "links are followed")
	assert.Empty(t, base)
	dir, base, err = v.CleanedAbs("/repository/web/a.yaml")
	require.NoError(t, err)
	assert.Equal(t, "/repository/web", dir.String())
	assert.Equal(t, "a.yaml", base)
	assert.True(t, v.IsDir("/repository"))
	assert.True(t, v.Exists("/repository/real/b.yaml"))

	for _, name := range []string{"/etc/hostname", "/repository/web/other.yaml", "/repositoryweb/a.yaml", "web/a.yaml", "/repository/../web/a.yaml", "/", ""} {
		_, err := v.ReadFile(name)
		require.ErrorIs(t, err, fs.ErrNotExist, name)
		_, _, err = v.CleanedAbs(name)
		require.ErrorIs(t, err, fs.ErrNotExist, name)
		assert.False(t, v.Exists(name), name)
		assert.False(t, v.IsDir(name), name)
	}
}

func TestAFleetRepositoryIsReadOnly(t *testing.T) {
	v := view{files: map[string][]byte{"a": nil}, dirs: map[string]string{".": "."}}
	_, err := v.Create("/repository/a")
	require.ErrorIs(t, err, errReadOnly)
	require.ErrorIs(t, v.WriteFile("/repository/a", nil), errReadOnly)
	require.ErrorIs(t, v.Mkdir("/repository/b"), errReadOnly)
	require.ErrorIs(t, v.MkdirAll("/repository/b/c"), errReadOnly)
	require.ErrorIs(t, v.RemoveAll("/repository"), errReadOnly)
	require.ErrorIs(t, v.Walk("/repository", nil), fs.ErrNotExist)
}
