package render

import (
	"encoding/json"
	"errors"
	"path"
	"slices"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// build runs kustomize over what the scan read: the base, and the components
// laid over it.
func (s *scan) build(base *kustomization, components []string) ([]item, error) {
	root, err := assemble(base, components)
	if err != nil {
		return nil, err
	}
	if base.node == nil {
		// A folder without a kustomization file gets the one it stands for.
		if s.files[path.Join(base.dir, "kustomization.yaml")], err = json.Marshal(base.spec); err != nil {
			return nil, err
		}
	}
	objects, err := kustomize(view{files: s.files, dirs: s.dirs, root: root})
	if err != nil {
		return nil, s.quote(err)
	}
	var items []item
	for _, object := range objects.Resources() {
		if object.IsNilOrEmpty() {
			continue
		}
		items = append(items, item{object.YNode(), place{file: s.origin(object, base)}})
	}
	return items, nil
}

// assemble writes the kustomization over an add-on. Of its base's
// buildMetadata only the label is kept: the annotations would name this file.
func assemble(base *kustomization, components []string) ([]byte, error) {
	root := types.Kustomization{
		TypeMeta:      types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		BuildMetadata: []string{types.OriginAnnotations},
		Resources:     []string{fromAssembly(base.dir)},
	}
	if slices.Contains(base.spec.BuildMetadata, types.ManagedByLabelOption) {
		root.BuildMetadata = append(root.BuildMetadata, types.ManagedByLabelOption)
	}
	for _, dir := range components {
		root.Components = append(root.Components, fromAssembly(dir))
	}
	return json.Marshal(root)
}

func fromAssembly(dir string) string { return path.Join("..", repository, dir) }

// kustomize builds. It panics on some inputs, and it is not safe for two
// goroutines at once, whatever their inputs: the Renderer's lock holds here.
func kustomize(seen view) (objects resmap.ResMap, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			objects, err = nil, errors.New("panics on it; `kustomize build` shows where")
		}
	}()
	// A schema that somebody set stays set for the process, and patches then
	// replace lists that they should merge. The scan lets nobody set one.
	if openapi.GetSchemaVersion() != openapi.DefaultOpenAPI {
		openapi.ResetOpenAPI()
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionNone
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	options.PluginConfig = types.DisabledPluginConfig()
	return krusty.MakeKustomizer(options).Run(seen, assembly)
}

// origin gives the file that kustomize notes as the origin of an object. Where
// the note is gone, or names a file by way of a linked folder that it is not
// in, that is the kustomization of the add-on.
func (s *scan) origin(object *resource.Resource, base *kustomization) string {
	noted, err := object.GetOrigin()
	if err != nil || noted == nil {
		return base.file
	}
	name := noted.Path
	if name == "" {
		name = noted.ConfiguredIn
	}
	if actual, what, err := s.tree.stat(inside(path.Join(assembly, name))); err == nil && what == kindFile {
		return actual
	}
	return base.file
}
