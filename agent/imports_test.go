package agent_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/fleetling/fleetling/"

// mayImport is the architecture: every package of this module, and the only
// packages of this module that it may import. "x/..." is x and all below it.
var mayImport = map[string][]string{
	"sources":                 nil,
	"sources/gittest":         nil,
	"sources/trust":           {"sources", "sources/gittest"},
	"sources/fleet":           {"sources"},
	"sources/git":             {"sources", "sources/trust", "sources/gittest"},
	"sources/render":          {"sources"},
	"apply":                   nil,
	"discovery":               nil,
	"discovery/carriertest":   {"discovery"},
	"discovery/record":        {"discovery"},
	"discovery/peer":          {"discovery", "discovery/record"},
	"discovery/mcs":           {"discovery", "discovery/record"},
	"discovery/registry/git":  {"discovery", "discovery/carriertest"},
	"discovery/registry/nats": {"discovery", "discovery/carriertest"},
	"agent/api/v1alpha1":      nil,
	"agent/desired":           {"sources", "sources/trust", "sources/fleet", "sources/git", "sources/render", "sources/gittest"},
	"agent/capi":              {"sources", "sources/fleet", "sources/render"},
	"agent/clusterset":        {"discovery/..."},
	"agent/endpoint":          nil,
	"agent/probe":             nil,
	"agent":                   {"agent/api/v1alpha1", "agent/clusterset", "agent/desired", "agent/endpoint", "agent/probe", "sources/...", "apply/...", "discovery/..."},
	"agent/cli":               {"agent", "agent/api/v1alpha1", "agent/capi", "agent/probe", "agent/clusterset", "agent/desired", "sources/...", "apply/...", "discovery/..."},
	"agent/cmd/fleetling":     {"agent", "agent/cli"},
}

// onlyTests are packages that nothing but tests may import.
var onlyTests = []string{"sources/gittest", "discovery/carriertest"}

// onlyIn names the heavy dependencies that one subtree owns.
var onlyIn = map[string]string{
	"github.com/go-git":               "sources/git",
	"github.com/ProtonMail/go-crypto": "sources/trust",
	"github.com/fluxcd/pkg/ssa":       "apply",
	"sigs.k8s.io/kustomize":           "sources/render",
	"sigs.k8s.io/mcs-api":             "discovery",
	"github.com/nats-io":              "discovery/registry/nats",
}

// TestImportDirection reads the files itself: a test that asked `go list` would
// be served from the test cache when another package changes.
func TestImportDirection(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if entry != nil && (entry.Name() == "e2e" || entry.Name() == "testdata") {
				return fs.SkipDir
			}
			return err
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		checkTestSupport(t, path, file)
		check(t, filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, ".."+string(filepath.Separator)))), file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, pkg string, file *ast.File) {
	t.Helper()
	allowed, known := mayImport[pkg]
	if !known {
		t.Errorf("package %s is not in mayImport: decide where it stands first", pkg)
	}
	for _, spec := range file.Imports {
		imp, _ := strconv.Unquote(spec.Path.Value)
		own, ours := strings.CutPrefix(imp, module)
		if ours && own != pkg && !slices.ContainsFunc(allowed, func(rule string) bool { return matches(rule, own) }) {
			t.Errorf("%s must not import %s", pkg, own)
		}
		for dep, owner := range onlyIn {
			if within(imp, dep) && !within(pkg, owner) {
				t.Errorf("%s must not import %s: only %s may", pkg, imp, owner)
			}
		}
	}
}

func checkTestSupport(t *testing.T, path string, file *ast.File) {
	t.Helper()
	for _, spec := range file.Imports {
		imp, _ := strconv.Unquote(spec.Path.Value)
		own, ours := strings.CutPrefix(imp, module)
		if ours && slices.Contains(onlyTests, own) && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s must not import %s: only tests may", path, own)
		}
	}
}

func matches(rule, pkg string) bool {
	if tree, ok := strings.CutSuffix(rule, "/..."); ok {
		return within(pkg, tree)
	}
	return rule == pkg
}

func within(path, tree string) bool { return path == tree || strings.HasPrefix(path, tree+"/") }
