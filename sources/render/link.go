package render

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// maxLinks is how many symbolic links one path may lead over.
const maxLinks = 40

// resolve follows the links on the way to name. A file system that knows no
// links is taken as it is.
func (t *tree) resolve(name string) (string, error) {
	links, ok := t.fsys.(fs.ReadLinkFS)
	if !ok {
		return name, nil
	}
	done, rest := ".", strings.Split(name, "/")
	for hops := 0; len(rest) > 0; {
		step := path.Join(done, rest[0])
		rest = rest[1:]
		target, err := t.readLink(links, step)
		if err != nil {
			return "", err
		}
		if target == "" {
			done = step
			continue
		}
		if hops++; hops > maxLinks {
			return "", refused(name, errors.New("its symbolic links go round in a circle"))
		}
		done, rest = ".", append(strings.Split(target, "/"), rest...)
	}
	return done, nil
}

// readLink gives where the link at name leads, and "" for what is not a link.
func (t *tree) readLink(links fs.ReadLinkFS, name string) (string, error) {
	if target, known := t.links[name]; known {
		return target, nil
	}
	info, err := links.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", refused(name, err)
	case info.Mode().Type() != fs.ModeSymlink:
		t.links[name] = ""
		return "", nil
	}
	target, err := links.ReadLink(name)
	if err != nil {
		return "", refused(name, err)
	}
	actual := path.Join(path.Dir(name), target)
	if path.IsAbs(target) || outside(actual) {
		return "", refused(name, errors.New("a symbolic link that leads out of the repository: commit the files themselves"))
	}
	t.links[name] = actual
	return actual, nil
}
