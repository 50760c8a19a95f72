package render

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fleetling/fleetling/sources"
)

var update = flag.Bool("update", false, "rewrite want in testdata")

// TestRender runs testdata/render/*.txtar. The files of a case are the fleet
// repository, `request` is the Request in YAML, with limits where they matter,
// and `want` what comes out. Three forms of file names say what text can't:
//
//	a/link -> ../b        a symbolic link
//	a/sub (submodule)     neither file nor folder
//	a/file (quoted)       a file whose one line is a quoted Go string
func TestRender(t *testing.T) {
	cases, err := filepath.Glob("testdata/render/*.txtar")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(cases), 70)
	for _, name := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			require.NoError(t, err)
			fsys, req, limits := parseCase(t, archive)
			result, err := New(limits).Render(fsys, req)
			got := describe(t, result, err)
			want := &archive.Files[len(archive.Files)-1]
			require.Equal(t, "want", want.Name, "the last file of a case")
			if *update {
				want.Data = []byte(got)
				require.NoError(t, os.WriteFile(name, txtar.Format(archive), 0o644))
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Errorf("%s(-want +got):\n%s", archive.Comment, diff)
			}
			again, againErr := New(limits).Render(fsys, req)
			assert.Equal(t, got, describe(t, again, againErr), "the same text twice")
			if err == nil {
				assertSteady(t, fsys, req, limits, result)
				assertAsKustomize(t, fsys, req, limits, result)
			}
		})
	}
}

func parseCase(t *testing.T, archive *txtar.Archive) (fstest.MapFS, Request, sources.Limits) {
	t.Helper()
	fsys := fstest.MapFS{}
	var input struct {
		Request
		Limits sources.Limits
	}
	input.Limits = sources.DefaultLimits()
	for _, f := range archive.Files {
		if f.Name == "request" {
			require.NoError(t, sigsyaml.UnmarshalStrict(f.Data, &input))
		} else if f.Name != "want" {
			name, entry := parseFile(t, f)
			fsys[name] = entry
		}
	}
	return fsys, input.Request, input.Limits
}

func parseFile(t *testing.T, f txtar.File) (string, *fstest.MapFile) {
	t.Helper()
	name, entry := f.Name, &fstest.MapFile{Data: f.Data, Mode: 0o644}
	if link, target, ok := strings.Cut(name, " -> "); ok {
		name, entry = link, &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
	} else if sub, ok := strings.CutSuffix(name, " (submodule)"); ok {
		name, entry = sub, &fstest.MapFile{Mode: fs.ModeIrregular}
	} else if quoted, ok := strings.CutSuffix(name, " (quoted)"); ok {
		text, err := strconv.Unquote(strings.TrimSpace(string(f.Data)))
		require.NoError(t, err)
		name, entry.Data = quoted, []byte(text)
	}
	if strings.HasPrefix(name, `"`) {
		unquoted, err := strconv.Unquote(name)
		require.NoError(t, err)
		name = unquoted
	}
	return name, entry
}

// describe writes what a person would check: the objects with their files, or
// the problems with their reasons.
func describe(t *testing.T, result Result, err error) string {
	t.Helper()
	var out strings.Builder
	for _, problem := range all(err) {
		e, ok := errors.AsType[*sources.Error](problem)
		if !ok {
			fmt.Fprintln(&out, problem)
			continue
		}
		fmt.Fprintf(&out, "%s: %s\n", e.Reason, e)
	}
	for _, warning := range result.Warnings {
		fmt.Fprintf(&out, "# warning: %s\n", warning)
	}
	for _, object := range result.Objects {
		text, err := sigsyaml.Marshal(object.Object)
		require.NoError(t, err)
		fmt.Fprintf(&out, "---\n# %s\n%s", object.File, text)
	}
	return out.String()
}

func sameError() cmp.Option {
	return cmp.Comparer(func(a, b *sources.Error) bool { return a.Error() == b.Error() })
}

func all(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// assertSteady renders again, with the same Renderer and with a new one.
func assertSteady(t *testing.T, fsys fs.FS, req Request, limits sources.Limits, first Result) {
	t.Helper()
	r := New(limits)
	for range 3 {
		again, err := r.Render(fsys, req)
		require.NoError(t, err)
		assert.Empty(t, cmp.Diff(first, again, sameError()))
	}
	for _, object := range first.Objects {
		_, err := fs.Stat(fsys, object.File)
		require.NoError(t, err, "every object names a file that is there")
		assert.NotPanics(t, func() { object.DeepCopy() }, "an object is what JSON decodes to")
	}
	assert.True(t, slices.IsSortedFunc(first.Warnings, byPlace))
}

// TestTooManyObjectsAreRefusedBeforeTheyAreBuilt lists 200 generators 128
// times over, by way of 509 kustomizations: kustomize would take hours.
func TestTooManyObjectsAreRefusedBeforeTheyAreBuilt(t *testing.T) {
	var bottom strings.Builder
	bottom.WriteString("configMapGenerator:\n")
	for i := range 200 {
		fmt.Fprintf(&bottom, "- {name: c%d, literals: [a=b]}\n", i)
	}
	fsys := fstest.MapFS{"l7/kustomization.yaml": {Data: []byte(bottom.String())}}
	for level := range 7 {
		fsys[fmt.Sprintf("l%d/kustomization.yaml", level)] = &fstest.MapFile{Data: []byte("resources: [one, two]\n")}
		for _, name := range []string{"one", "two"} {
			fsys[fmt.Sprintf("l%d/%s/kustomization.yaml", level, name)] = &fstest.MapFile{Data: fmt.Appendf(nil, "namePrefix: %s-\nresources: [../../l%d]\n", name, level+1)}
		}
	}
	_, err := New(sources.DefaultLimits()).Render(fsys, Request{AddOn: "web", Path: "l0"})
	require.EqualError(t, err, "l0/kustomization.yaml: add-on web: more than 20000 objects")
	assert.Equal(t, sources.LimitExceeded, sources.ReasonOf(err))
}
