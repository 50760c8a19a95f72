package render

import (
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/fleetling/fleetling/sources"
)

// FuzzRender renders small trees. Whatever they hold: no panic, the same result
// twice, and what takes the short way gives what kustomize gives.
func FuzzRender(f *testing.F) {
	cases, err := filepath.Glob("testdata/render/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range cases {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		seed := map[string][]byte{}
		for _, file := range archive.Files {
			seed[file.Name] = file.Data
		}
		f.Add(seed["web/kustomization.yaml"], seed["web/a.yaml"], seed["web/b.yaml"], true)
		f.Add(seed["web/kustomization.yaml"], seed["web/a.yaml"], seed["web/b.yaml"], false)
	}
	f.Fuzz(func(t *testing.T, kustomization, a, b []byte, with bool) {
		fsys := fstest.MapFS{"web/a.yaml": {Data: a}, "web/b.yaml": {Data: b}}
		if with {
			fsys["web/kustomization.yaml"] = &fstest.MapFile{Data: kustomization}
		}
		req := Request{AddOn: "web", Path: "web", Substitute: map[string]string{"CLUSTER": "prod"}}
		limits := sources.Limits{ObjectBytes: 1 << 16, Files: 10, TreeBytes: 1 << 18, Depth: 5}
		result, err := New(limits).Render(fsys, req)
		if err != nil {
			if sources.ReasonOf(err) == "" {
				t.Errorf("an error without a reason: %v", err)
			}
			return
		}
		again, err := New(limits).Render(fsys, req)
		if err != nil || again.Digest != result.Digest {
			t.Errorf("digest %s, then %s (%v)", result.Digest, again.Digest, err)
		}
		long, err := longWay(fsys, req, limits)
		if err != nil {
			t.Fatalf("kustomize refuses what we concatenate: %v", err)
		}
		if diff := cmp.Diff(long.Objects, result.Objects); diff != "" {
			t.Errorf("-long way +short way\n%s", diff)
		}
	})
}
