package render

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/fleetling/fleetling/sources"
)

// kind is what stands at a path.
type kind int

const (
	kindAbsent kind = iota
	kindFile
	kindFolder
)

// tree reads a fleet repository for one render. It follows links inside the
// root and nowhere else, keeps the limits, and remembers every answer, so that
// a later render can ask the same questions again (see trace).
type tree struct {
	fsys   fs.FS
	limits sources.Limits
	trace  trace
	links  map[string]string
	data   map[string][]byte
	bytes  int64
	files  int
	// over is the limit that was hit: nothing is read after that.
	over error
}

func newTree(fsys fs.FS, limits sources.Limits) *tree {
	return &tree{fsys: fsys, limits: limits, trace: trace{}, links: map[string]string{}, data: map[string][]byte{}}
}

// stat says what stands at a path and where its links lead.
func (t *tree) stat(name string) (string, kind, error) {
	actual, k, err := t.look(name)
	if err != nil {
		return "", kindAbsent, err
	}
	t.trace.stat(name, actual, k)
	return actual, k, nil
}

func (t *tree) look(name string) (string, kind, error) {
	if t.over != nil {
		return "", kindAbsent, t.over
	}
	if depth := strings.Count(name, "/") + 1; depth > t.limits.Depth {
		return "", kindAbsent, t.exceeded(name, "folders nest deeper than %d", t.limits.Depth)
	}
	if !fs.ValidPath(name) {
		return "", kindAbsent, refused(name, errors.New("not a path inside this repository"))
	}
	actual, err := t.resolve(name)
	if err != nil {
		return "", kindAbsent, err
	}
	info, err := fs.Stat(t.fsys, actual)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return actual, kindAbsent, nil
	case err != nil:
		return "", kindAbsent, refused(name, err)
	case info.IsDir():
		return actual, kindFolder, nil
	case !info.Mode().IsRegular():
		return "", kindAbsent, refused(name, errors.New("neither a file nor a folder (a submodule, a device): commit the files themselves"))
	case info.Size() > t.limits.ObjectBytes:
		return "", kindAbsent, t.exceeded(name, "the file is larger than %d bytes", t.limits.ObjectBytes)
	}
	return actual, kindFile, nil
}

// read gives the content of a file. The bytes are shared: nobody changes them.
func (t *tree) read(name string) ([]byte, error) {
	actual, k, err := t.stat(name)
	if err != nil {
		return nil, err
	}
	if k != kindFile {
		return nil, refused(name, errors.New("not a file"))
	}
	if data, known := t.data[actual]; known {
		return data, nil
	}
	if t.files++; t.files > t.limits.Files {
		return nil, t.exceeded(name, "more than %d files are read", t.limits.Files)
	}
	data, err := t.load(actual)
	if err != nil {
		return nil, err
	}
	if t.bytes += int64(len(data)); t.bytes > t.limits.TreeBytes {
		return nil, t.exceeded(name, "more than %d bytes are read", t.limits.TreeBytes)
	}
	t.data[actual] = data
	if bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/")) {
		return nil, refused(name, errors.New("a Git LFS pointer: the content is not in the repository; commit the file itself"))
	}
	return data, nil
}

// load trusts no announced size.
func (t *tree) load(name string) ([]byte, error) {
	f, err := t.fsys.Open(name)
	if err != nil {
		return nil, refused(name, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	var data bytes.Buffer
	if info, err := f.Stat(); err == nil {
		data.Grow(int(min(max(info.Size(), 0), t.limits.ObjectBytes)) + bytes.MinRead)
	}
	if _, err := data.ReadFrom(io.LimitReader(f, t.limits.ObjectBytes+1)); err != nil {
		return nil, refused(name, err)
	}
	if int64(data.Len()) > t.limits.ObjectBytes {
		return nil, t.exceeded(name, "the file is larger than %d bytes", t.limits.ObjectBytes)
	}
	t.trace.read(name, data.Bytes())
	return data.Bytes(), nil
}

// list gives the names in a folder, sorted.
func (t *tree) list(name string) ([]string, error) {
	actual, k, err := t.stat(name)
	if err != nil {
		return nil, err
	}
	if k != kindFolder {
		return nil, refused(name, errors.New("not a folder"))
	}
	return t.entries(actual)
}

func (t *tree) entries(name string) ([]string, error) {
	entries, err := fs.ReadDir(t.fsys, name)
	if err != nil {
		return nil, refused(name, err)
	}
	if len(entries) > t.limits.Files {
		return nil, t.exceeded(name, "more than %d entries in one folder", t.limits.Files)
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	t.trace.list(name, names)
	return names, nil
}

func (t *tree) exceeded(name, format string, args ...any) error {
	t.over = &sources.Error{Reason: sources.LimitExceeded, File: name, Err: fmt.Errorf(format, args...)}
	return t.over
}

// refused names the path of a failure. What the file system below already said
// as a *sources.Error keeps its reason.
func refused(name string, err error) error {
	if e, ok := errors.AsType[*sources.Error](err); ok {
		return &sources.Error{Reason: e.Reason, File: cmp.Or(e.File, name), Err: e.Err}
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path == name {
		err = e.Err
	}
	return &sources.Error{Reason: sources.RenderFailed, File: name, Err: err}
}
