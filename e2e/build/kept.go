package build

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/fleetling/fleetling/e2e/filelock"
)

const kubernetes = "1.37.2"

// kept is a program that is built once and kept in .cache under its name, from a
// folder under e2e that is a module of its own: the one of the same name where
// folder is empty. Where that module holds no program, it requires the module
// that does, and tool is that program's package.
type kept struct{ root, folder, name, tool string }

// find gives the program's path, or an error that is fs.ErrNotExist.
func (k kept) find() (string, error) {
	path, err := k.path()
	if err != nil {
		return "", err
	}
	_, err = os.Stat(path)
	return path, err
}

// build builds the program where it is not built yet.
func (k kept) build(ctx context.Context, progress io.Writer) (string, error) {
	if path, err := k.find(); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	lock, err := filelock.Acquire(ctx, filepath.Join(Cache(k.root), k.name+".lock"))
	if err != nil {
		return "", err
	}
	defer lock.Release()
	// Another process may have built it while this one waited.
	path, err := k.find()
	if !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if path, err = k.path(); err != nil {
		return "", err
	}
	if err := compile(ctx, source{k.name, k.dir(), cmp.Or(k.tool, ".")}, path, progress); err != nil {
		return "", fmt.Errorf("build of %s: %w", k.name, err)
	}
	return path, k.removeOthers(path)
}

func (k kept) dir() string { return filepath.Join(k.root, "e2e", cmp.Or(k.folder, k.name)) }

// path names the binary by what goes into it.
func (k kept) path() (string, error) {
	sources, err := filepath.Glob(filepath.Join(k.dir(), "*.go"))
	if err != nil {
		return "", err
	}
	sources = append(sources, filepath.Join(k.dir(), "go.mod"), filepath.Join(k.dir(), "go.sum"))
	slices.Sort(sources)
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.GOOS, runtime.GOARCH, flags())
	for _, source := range sources {
		content, err := os.ReadFile(source)
		if errors.Is(err, fs.ErrNotExist) {
			// Not the binary that is missing: no build would help.
			return "", fmt.Errorf("sources of %s: %s is missing", k.name, source)
		}
		if err != nil {
			return "", fmt.Errorf("sources of %s: %w", k.name, err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", filepath.Base(source), len(content), content)
	}
	return filepath.Join(Cache(k.root), k.name+"-"+hex.EncodeToString(hash.Sum(nil))[:16]), nil
}

// removeOthers removes what earlier sources made: 130 MB each.
func (k kept) removeOthers(path string) error {
	binaries, err := filepath.Glob(filepath.Join(filepath.Dir(path), k.name+"-*"))
	if err != nil {
		return err
	}
	for _, binary := range binaries {
		if binary != path {
			if err := os.Remove(binary); err != nil {
				return err
			}
		}
	}
	return nil
}

// flags gives the build flags. VCS stamping would link it anew after every
// commit. They are the same for all: the modules share the build cache.
func flags() []string {
	const version = "k8s.io/component-base/version."
	major, rest, _ := strings.Cut(kubernetes, ".")
	minor, _, _ := strings.Cut(rest, ".")
	return []string{
		"-trimpath", "-buildvcs=false", "-ldflags=-s -w" +
			" -X " + version + "gitVersion=v" + kubernetes +
			" -X " + version + "gitMajor=" + major +
			" -X " + version + "gitMinor=" + minor,
	}
}
