package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/fleetling/fleetling/sources"
)

// Request says what to render.
type Request struct {
	// AddOn is the name that errors carry.
	AddOn string
	// Path is the folder of the base, from the root of the repository.
	Path string
	// Components are the folders of kustomize components, laid over the base
	// in this order.
	Components []string
	// Substitute are the values for ${NAME} in string values of the objects.
	Substitute map[string]string
}

// Result is what a request renders to. It is the caller's own: changing it
// changes no other result.
type Result struct {
	// Objects are sorted by group, kind, namespace and name, and not empty.
	Objects []Object
	// Digest is "sha256:..." over the content of all objects.
	Digest string
	// Warnings name what was left out, 20 at most, by file and line. They have
	// no reason: nothing failed.
	Warnings []*sources.Error
}

// Renderer renders add-ons and remembers what it rendered. Make one for a
// process: its lock is the one around kustomize, which must not run twice at a
// time in one process.
type Renderer struct {
	limits sources.Limits
	mu     sync.Mutex
	cache  *cache
}

// New gives a Renderer that reads no more than limits allow.
func New(limits sources.Limits) *Renderer {
	return &Renderer{limits: limits, cache: newCache(limits)}
}

// Render turns a path of a fleet repository into objects. Errors are
// *sources.Error, several of them joined, with reason RenderFailed, EmptyRender,
// PathNotFound or LimitExceeded.
func (r *Renderer) Render(fsys fs.FS, req Request) (Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, err := req.key()
	if err != nil {
		return Result{}, fmt.Errorf("request of add-on %s: %w", req.AddOn, err)
	}
	if e := r.cache.find(key, fsys); e != nil {
		return e.result()
	}
	t := newTree(fsys, r.limits)
	result, texts, err := render(t, req)
	if err != nil {
		return Result{}, err
	}
	r.cache.store(newEntry(key, t.trace, result, texts))
	return result, nil
}

func render(t *tree, req Request) (Result, [][]byte, error) {
	p := &problems{addOn: req.AddOn}
	s := newScan(t, p)
	base := s.base(req)
	components := s.components(req)
	if err := p.err(); err != nil {
		return Result{}, nil, err
	}
	items, err := s.objects(base, components)
	if err != nil {
		p.add(base.place, "%w", err)
		return Result{}, nil, p.err()
	}
	return finished(items, req, t.limits, p, base.place)
}

// objects takes the short way where kustomize would only concatenate.
func (s *scan) objects(base *kustomization, components []string) ([]item, error) {
	if base.plain && len(components) == 0 {
		return base.concatenate(), nil
	}
	return s.build(base, components)
}

// base reads the folder of the request.
func (s *scan) base(req Request) *kustomization {
	name, dir, ok := s.requested(req.Path)
	if !ok {
		return nil
	}
	found, err := s.find(dir)
	if err != nil {
		s.fail(place{file: name}, err)
		return nil
	}
	if found == "" {
		return s.folder(dir)
	}
	base := s.visit(name, dir, place{file: name})
	if base != nil {
		s.expect(base, types.KustomizationKind, base.place)
	}
	return base
}

func (s *scan) components(req Request) []string {
	var dirs []string
	for _, written := range req.Components {
		name, dir, ok := s.requested(written)
		if !ok {
			continue
		}
		if component := s.visit(name, dir, place{file: name}); component != nil {
			s.expect(component, types.ComponentKind, component.place)
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// requested finds a folder that fleetling.yaml names.
func (s *scan) requested(written string) (name, dir string, ok bool) {
	name = path.Clean(written)
	if !fs.ValidPath(name) || written == "" {
		s.problems.add(place{}, "the path %.200q is not one from the root of the repository", written)
		return "", "", false
	}
	dir, what, err := s.tree.stat(name)
	switch {
	case err != nil:
		s.fail(place{file: name}, err)
	case what == kindAbsent:
		s.problems.put(&sources.Error{Reason: sources.PathNotFound, File: name, Err: errors.New("the path is not there: nothing of this add-on is applied or pruned")})
	case what == kindFile:
		s.problems.put(&sources.Error{Reason: sources.PathNotFound, File: name, Err: errors.New("a file: name its folder")})
	}
	return name, dir, what == kindFolder
}

// finished makes objects of what was rendered, and gives them encoded, too.
func finished(items []item, req Request, limits sources.Limits, p *problems, base place) (Result, [][]byte, error) {
	f := &finish{problems: p, variable: newVariables(req.Substitute, limits.TreeBytes), files: map[identity]string{}}
	for _, it := range items {
		f.add(it)
	}
	if err := p.err(); err != nil {
		return Result{}, nil, err
	}
	fail := func(reason sources.Reason, format string, args ...any) (Result, [][]byte, error) {
		p.put(&sources.Error{Reason: reason, File: base.file, Err: fmt.Errorf(format, args...)})
		return Result{}, nil, p.err()
	}
	switch n := len(f.result.Objects); {
	case n == 0:
		return fail(sources.EmptyRender, "renders to no object, and that never means to remove everything: to remove the add-on, take it out of fleetling.yaml")
	case n > maxObjects:
		return fail(sources.LimitExceeded, "renders to %d objects, more than %d", n, maxObjects)
	}
	f.result.sort()
	texts, err := encode(f.result.Objects)
	if err != nil {
		return fail(sources.RenderFailed, "%w", err)
	}
	sum, size := digest(texts)
	if size > limits.TreeBytes {
		return fail(sources.LimitExceeded, "renders to more than %d bytes", limits.TreeBytes)
	}
	f.result.Digest = sum
	return f.result, texts, nil
}
