package render

import (
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
)

// folder reads a folder without a kustomization file as the kustomization that
// it stands for: one that lists its *.yaml and *.yml, at any depth, by path.
func (s *scan) folder(dir string) *kustomization {
	k := &kustomization{place: place{file: dir}, dir: dir, plain: true, visits: 1}
	k.spec.TypeMeta = types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind}
	s.dirs[dir] = dir
	s.under(k, dir)
	if k.objects > maxObjects {
		s.limit(k.place, "more than %d objects", maxObjects)
	}
	return k
}

func (s *scan) under(k *kustomization, name string) {
	actual, what, err := s.tree.stat(name)
	switch {
	case err != nil:
		s.fail(place{file: name}, err)
	case what == kindFile && (path.Ext(name) == ".yaml" || path.Ext(name) == ".yml"):
		s.manifest(k, name, actual)
	case what == kindFolder && slices.Contains(s.stack, actual):
		s.problems.add(place{file: name}, "a circle: a symbolic link leads back to a folder that holds it")
	case what == kindFolder:
		s.stack = append(s.stack, actual)
		s.children(k, name)
		s.stack = s.stack[:len(s.stack)-1]
	}
}

func (s *scan) children(k *kustomization, name string) {
	names, err := s.tree.list(name)
	if err != nil {
		s.fail(place{file: name}, err)
	}
	for _, child := range names {
		at := path.Join(name, child)
		switch {
		case s.problems.stopped():
			return
		case !isText(child):
			s.problems.add(place{file: name}, "it holds %.60q, a name that is no text: rename it", child)
		case slices.Contains(konfig.RecognizedKustomizationFileNames(), child):
			s.problems.add(place{file: at}, "a kustomization below %s, which has none: add one there that lists what belongs to it", k.dir)
		default:
			s.under(k, at)
		}
	}
}

// manifest adds one file of a plain folder.
func (s *scan) manifest(k *kustomization, name, actual string) {
	if _, err := local(".", name); err != nil {
		s.problems.add(place{file: name}, "kustomize would not read this name as that of a file: rename it")
		return
	}
	data, err := s.tree.read(name)
	if err != nil {
		s.fail(place{file: name}, err)
		return
	}
	s.files[name] = data
	s.manifests(k, actual, data)
	k.spec.Resources = append(k.spec.Resources, strings.TrimPrefix(name, k.dir+"/"))
}
