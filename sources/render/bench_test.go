package render

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fleetling/fleetling/sources"
)

func deployments(n int, more string) fstest.MapFS {
	var names, text strings.Builder
	for i := range n {
		fmt.Fprintf(&names, "- d%d.yaml\n", i)
	}
	fsys := fstest.MapFS{}
	for i := range n {
		text.Reset()
		fmt.Fprintf(&text, `apiVersion: apps/v1
kind: Deployment
metadata: {name: d%d, namespace: web, labels: {app: d%d}}
spec:
  replicas: 2
  selector: {matchLabels: {app: d%d}}
  template:
    metadata: {labels: {app: d%d}}
    spec:
      containers:
      - name: c
        image: registry.example.com/app:1.2.3
        ports: [{name: http, containerPort: 8080}]
        resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
`, i, i, i, i)
		fsys[fmt.Sprintf("web/d%d.yaml", i)] = &fstest.MapFile{Data: []byte(text.String())}
	}
	fsys["web/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources:\n" + names.String() + more)}
	return fsys
}

func configMaps(n int, more string) fstest.MapFS {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm-%d, namespace: web}\ndata: {key: value-%d}\n", i, i)
	}
	return fstest.MapFS{
		"web/all.yaml":           {Data: []byte(text.String())},
		"web/kustomization.yaml": {Data: []byte("resources: [all.yaml]\n" + more)},
	}
}

func generated(n int) fstest.MapFS {
	var text strings.Builder
	text.WriteString("configMapGenerator:\n")
	for i := range n {
		fmt.Fprintf(&text, "- {name: cm-%d, namespace: web, literals: [key=value-%d]}\n", i, i)
	}
	return fstest.MapFS{"web/kustomization.yaml": {Data: []byte(text.String())}}
}

// BenchmarkRender measures renders of their own, without the cache: `plain`
// only lists resources, the others go through kustomize.
func BenchmarkRender(b *testing.B) {
	patch := "patches:\n- target: {kind: Deployment}\n  patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: all}\n    spec: {template: {spec: {containers: [{name: c, env: [{name: E, value: '1'}]}]}}}\n"
	cases := []struct {
		name string
		fsys fs.FS
	}{
		{"1 object, plain", deployments(1, "")},
		{"1 object, kustomize", deployments(1, "namespace: team\n")},
		{"50 objects, plain", deployments(50, "")},
		{"50 objects, kustomize", deployments(50, "namespace: team\n")},
		{"50 objects, kustomize with a patch of all", deployments(50, patch)},
		{"1000 ConfigMaps, plain", configMaps(1000, "")},
		{"250 ConfigMaps, kustomize", configMaps(250, "namespace: team\n")},
		{"500 ConfigMaps, kustomize", configMaps(500, "namespace: team\n")},
		{"1000 ConfigMaps, kustomize", configMaps(1000, "namespace: team\n")},
		{"500 generated ConfigMaps, kustomize", generated(500)},
		{"1000 generated ConfigMaps, kustomize", generated(1000)},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) { uncached(b, c.fsys, Request{AddOn: "web", Path: "web"}) })
		b.Run(c.name+", cached", func(b *testing.B) { cached(b, c.fsys, Request{AddOn: "web", Path: "web"}) })
	}
}

// BenchmarkRenderKubePrometheus measures 131 real objects of 2.5 MB.
func BenchmarkRenderKubePrometheus(b *testing.B) {
	root := corpora(b)
	if root == "" {
		return
	}
	req := Request{AddOn: "monitoring", Path: "kube-prometheus"}
	b.Run("plain", func(b *testing.B) { uncached(b, os.DirFS(root), req) })
	b.Run("plain, cached", func(b *testing.B) { cached(b, os.DirFS(root), req) })
	b.Run("kustomize", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := longWay(os.DirFS(root), req, sources.DefaultLimits()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func uncached(b *testing.B, fsys fs.FS, req Request) {
	b.Helper()
	warm(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(sources.DefaultLimits()).Render(fsys, req); err != nil {
			b.Fatal(err)
		}
	}
}

func cached(b *testing.B, fsys fs.FS, req Request) {
	b.Helper()
	r := New(sources.DefaultLimits())
	if _, err := r.Render(fsys, req); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Render(fsys, req); err != nil {
			b.Fatal(err)
		}
	}
}

// warm loads kustomize's schema, which a process does once.
func warm(tb testing.TB) {
	tb.Helper()
	fsys := deployments(1, "patches: [{path: p.yaml}]\n")
	fsys["web/p.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d0, namespace: web}\nspec: {template: {spec: {containers: [{name: c, image: x}]}}}\n")}
	if _, err := New(sources.DefaultLimits()).Render(fsys, Request{AddOn: "warm", Path: "web"}); err != nil {
		tb.Fatal(err)
	}
}
