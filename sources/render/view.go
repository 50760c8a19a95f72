package render

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Where kustomize sees the fleet repository, and the kustomization that puts an
// add-on together: side by side, so that neither can name the other by chance.
const (
	repository = "/repository"
	assembly   = "/assembly"
)

var errReadOnly = errors.New("a fleet repository is read-only here")

var _ filesys.FileSystem = view{}

// view is what kustomize sees of a fleet repository: the files that the scan
// read, and nothing else.
type view struct {
	files map[string][]byte
	dirs  map[string]string
	root  []byte
}

func (v view) file(name string) ([]byte, bool) {
	if name == path.Join(assembly, "kustomization.yaml") {
		return v.root, true
	}
	data, ok := v.files[inside(name)]
	return data, ok
}

// inside gives a path from the root of the repository, and "" for one that
// stands elsewhere.
func inside(name string) string {
	if name == repository {
		return "."
	}
	name, ok := strings.CutPrefix(name, repository+"/")
	if !ok {
		return ""
	}
	return name
}

// CleanedAbs splits a path into its folder, with links followed, and its file.
func (v view) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	name = path.Clean(name)
	if name == assembly {
		return assembly, "", nil
	}
	if actual, ok := v.dirs[inside(name)]; ok {
		return filesys.ConfirmedDir(path.Join(repository, actual)), "", nil
	}
	if _, ok := v.file(name); ok {
		return filesys.ConfirmedDir(path.Dir(name)), path.Base(name), nil
	}
	return "", "", missing(name)
}

func (v view) ReadFile(name string) ([]byte, error) {
	if data, ok := v.file(path.Clean(name)); ok {
		return data, nil
	}
	return nil, missing(name)
}

func (v view) Exists(name string) bool {
	_, _, err := v.CleanedAbs(name)
	return err == nil
}

func (v view) IsDir(name string) bool {
	_, base, err := v.CleanedAbs(name)
	return err == nil && base == ""
}

func missing(name string) error {
	return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// The rest is not used by a build.

func (v view) Create(string) (filesys.File, error)         { return nil, errReadOnly }
func (v view) Mkdir(string) error                          { return errReadOnly }
func (v view) MkdirAll(string) error                       { return errReadOnly }
func (v view) RemoveAll(string) error                      { return errReadOnly }
func (v view) WriteFile(string, []byte) error              { return errReadOnly }
func (v view) Open(name string) (filesys.File, error)      { return nil, missing(name) }
func (v view) ReadDir(name string) ([]string, error)       { return nil, missing(name) }
func (v view) Glob(string) ([]string, error)               { return nil, nil }
func (v view) Walk(name string, _ filepath.WalkFunc) error { return missing(name) }
