package render

import (
	"fmt"
	"slices"

	"github.com/fleetling/fleetling/sources"
)

// duplicates refuses two manifests of one object that kustomize would refuse
// without naming their files. What only becomes equal later is found then.
func (s *scan) duplicates(k *kustomization) {
	items := k.items
	for _, base := range k.bases {
		if base.plain {
			items = append(slices.Clip(items), base.concatenate()...)
		}
	}
	files := make(map[identity]string, len(items))
	for _, it := range items {
		id := k.renamed(it.identity())
		first, twice := files[id]
		if !twice {
			files[id] = it.file
			continue
		}
		s.problems.put(&sources.Error{
			Reason: sources.RenderFailed, File: it.file, Line: it.line, Object: id.String(), Err: sameObject(first, it.file),
		})
	}
}

// renamed gives what a namespace makes of an object, where nothing that runs
// before it could tell two objects apart.
func (k *kustomization) renamed(id identity) identity {
	json, merges := k.oldPatches()
	others := len(k.spec.Components) + len(k.spec.Patches) + len(json) + len(merges)
	if k.spec.Namespace != "" && others == 0 {
		id.namespace = k.spec.Namespace
	}
	return id
}

func sameObject(first, second string) error {
	if first == second {
		return fmt.Errorf("the same object comes from %s twice: keep one", first)
	}
	return fmt.Errorf("the same object comes from %s and from %s: keep one", first, second)
}

// concatenate gives the objects of a plain kustomization and all below it.
func (k *kustomization) concatenate() []item {
	items := slices.Clip(k.items)
	for _, base := range k.bases {
		items = append(items, base.concatenate()...)
	}
	return items
}
