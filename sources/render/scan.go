package render

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/fleetling/fleetling/sources"
)

const (
	// maxVisits is how many kustomizations one add-on may read, a folder that
	// is listed twice counted twice.
	maxVisits = 1000
	// maxObjects is how many objects one add-on may hold.
	maxObjects = 20_000
)

// scan reads every file that a build could read, before kustomize reads any,
// and refuses what must not reach it. Kustomize then sees these files and no
// others.
type scan struct {
	tree     *tree
	problems *problems
	done     map[string]*kustomization
	stack    []string
	// files are what kustomize may read, by the path that it will ask for;
	// dirs the folders that it may enter, with where their links lead.
	files map[string][]byte
	dirs  map[string]string
	// secrets are values that must not stand in an error.
	secrets []string
}

func newScan(t *tree, p *problems) *scan {
	return &scan{
		tree: t, problems: p,
		done: map[string]*kustomization{}, files: map[string][]byte{}, dirs: map[string]string{},
	}
}

// visit reads the kustomization of a folder and all below it. Without one it
// says so at the place that names the folder.
func (s *scan) visit(name, dir string, from place) *kustomization {
	s.dirs[name], s.dirs[dir] = dir, dir
	for _, on := range s.stack {
		if on == dir || below(dir, on) {
			s.problems.add(from, "a circle: %s is being read already", on)
			return nil
		}
	}
	if k, known := s.done[dir]; known {
		return k
	}
	if len(s.stack) >= s.tree.limits.Depth {
		s.limit(from, "kustomizations nest deeper than %d", s.tree.limits.Depth)
		return nil
	}
	file, err := s.find(dir)
	if err == nil && file == "" {
		err = fmt.Errorf("the folder %s has no kustomization file", name)
	}
	if err != nil {
		s.fail(from, err)
		return nil
	}
	s.stack = append(s.stack, dir)
	k := s.load(file, dir)
	s.stack = s.stack[:len(s.stack)-1]
	s.done[dir] = k
	return k
}

// find gives the kustomization file of a folder, "" where there is none.
func (s *scan) find(dir string) (string, error) {
	var found []string
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		at := path.Join(dir, name)
		_, k, err := s.tree.stat(at)
		if err != nil {
			return "", err
		}
		if k == kindFile {
			found = append(found, at)
		}
	}
	if len(found) > 1 {
		return "", fmt.Errorf("two kustomization files in one folder: %s", strings.Join(found, " and "))
	}
	return strings.Join(found, ""), nil
}

func (s *scan) load(name, dir string) *kustomization {
	data, err := s.tree.read(name)
	if err != nil {
		s.fail(place{}, err)
		return nil
	}
	s.files[name] = data
	k := s.decode(name, dir, data)
	if k == nil {
		return nil
	}
	k.objects = len(k.spec.ConfigMapGenerator) + len(k.spec.SecretGenerator)
	s.refuseFields(k)
	for _, written := range k.spec.Resources {
		s.resource(k, written)
	}
	for _, written := range k.spec.Components {
		s.component(k, written)
	}
	s.references(k)
	if k.visits > maxVisits {
		s.limit(k.place, "more than %d kustomizations are read for it", maxVisits)
	}
	if k.objects > maxObjects {
		s.limit(k.place, "more than %d objects", maxObjects)
	}
	s.duplicates(k)
	return k
}

// refuseFields refuses what templates charts, or changes the schema that every
// other build of this process uses. It looks at what was decoded: a merge key
// may have brought it.
func (s *scan) refuseFields(k *kustomization) {
	if k.spec.OpenAPI != nil {
		s.problems.add(k.at("openapi"), "openapi is refused: it would change the schema for every other add-on")
	}
	if k.spec.HelmGlobals != nil || len(k.spec.HelmCharts) > 0 {
		at := cmp.Or(k.at("helmCharts").line, k.at("helmChartInflationGenerator").line, k.at("helmGlobals").line)
		s.problems.add(place{k.file, at}, "Helm charts are refused: nothing is templated here; commit the output of `helm template`")
	}
}

// resource reads what one line of `resources` names: manifests, or a folder.
func (s *scan) resource(k *kustomization, written string) {
	name, actual, what := s.lookup(k, written)
	switch what {
	case kindFile:
		if data, ok := s.data(k, name, written); ok {
			s.manifests(k, actual, data)
		}
	case kindFolder:
		if base := s.visit(name, actual, k.at(written)); base != nil {
			s.expect(base, types.KustomizationKind, k.at(written))
			k.bases = append(k.bases, base)
			k.adopt(base)
		}
	case kindAbsent: // lookup has said why
	}
}

// manifests adds the objects of one file.
func (s *scan) manifests(k *kustomization, name string, data []byte) {
	items := s.problems.manifests(name, data)
	for _, it := range items {
		s.hide(it.node)
	}
	k.items = append(k.items, items...)
	k.objects += len(items)
}

func (s *scan) component(k *kustomization, written string) {
	name, actual, what := s.lookup(k, written)
	switch what {
	case kindFile:
		s.problems.add(k.at(written), "a component is a folder, not a file")
	case kindFolder:
		if component := s.visit(name, actual, k.at(written)); component != nil {
			s.expect(component, types.ComponentKind, k.at(written))
			k.adopt(component)
		}
	case kindAbsent: // lookup has said why
	}
}

func (k *kustomization) adopt(child *kustomization) {
	k.visits = min(k.visits+child.visits, maxVisits+1)
	k.objects = min(k.objects+child.objects, maxObjects+1)
	k.plain = k.plain && child.plain
}

// expect refuses a component where a kustomization belongs, and the reverse.
func (s *scan) expect(k *kustomization, kind string, from place) {
	if k.spec.Kind != kind {
		s.problems.add(from, "%s is of kind %s; a %s belongs here", k.file, k.spec.Kind, kind)
	}
}

// lookup says what a path of a kustomization leads to. What is wrong with it is
// reported, and then it is absent.
func (s *scan) lookup(k *kustomization, written string) (name, actual string, what kind) {
	name, err := local(k.dir, written)
	if err != nil {
		s.problems.add(k.at(written), "%w", err)
		return "", "", kindAbsent
	}
	actual, what, err = s.tree.stat(name)
	switch {
	case err != nil:
		s.fail(k.at(written), err)
	case what == kindAbsent:
		s.problems.add(k.at(written), "%s is not there", name)
	}
	return name, actual, what
}

// data reads a file that a kustomization names.
func (s *scan) data(k *kustomization, name, written string) ([]byte, bool) {
	if !below(k.dir, name) {
		s.problems.add(k.at(written), "%s lies outside of the folder of this kustomization, and files may not: list a folder instead", name)
		return nil, false
	}
	data, err := s.tree.read(name)
	if err != nil {
		s.fail(k.at(written), err)
		return nil, false
	}
	s.files[name] = data
	return data, true
}

// fail takes over an error of the tree; where it names no file, from does.
func (s *scan) fail(from place, err error) {
	e, ok := errors.AsType[*sources.Error](err)
	if !ok {
		s.problems.add(from, "%w", err)
		return
	}
	s.problems.put(e)
}

func (s *scan) limit(at place, format string, args ...any) {
	s.problems.put(&sources.Error{Reason: sources.LimitExceeded, File: at.file, Line: at.line, Err: fmt.Errorf(format, args...)})
}
