package build

import (
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

const (
	kubernetes = "1.37.2"
	prefix     = "controlplane-"
)

// ErrNotBuilt says that the control plane has to be built first.
var ErrNotBuilt = errors.New("the control plane is not built: run `make control-plane` (15 minutes, once)")

// Program is a path and the arguments that come before all others.
type Program []string

// ControlPlane says which program is which component.
type ControlPlane struct {
	Etcd, APIServer, ControllerManager Program
}

// FindControlPlane gives the control plane that BuildControlPlane has built, or
// ErrNotBuilt. assets is a folder in the manner of KUBEBUILDER_ASSETS, or
// empty: a component that is there, under its own name, is taken from there.
func FindControlPlane(root, assets string) (ControlPlane, error) {
	path, err := controlPlanePath(root)
	if err != nil {
		return ControlPlane{}, err
	}
	plane, complete, err := choose(path, assets)
	if err != nil || complete {
		return plane, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return ControlPlane{}, ErrNotBuilt
	} else if err != nil {
		return ControlPlane{}, err
	}
	return plane, nil
}

// BuildControlPlane builds the control plane where it is not built yet, and
// writes a line about how far it is to progress every few seconds. Nothing is
// built where assets holds all components.
func BuildControlPlane(ctx context.Context, root, assets string, progress io.Writer) (ControlPlane, error) { //nolint:revive // build is the verb here, as find is in FindControlPlane
	plane, err := FindControlPlane(root, assets)
	if !errors.Is(err, ErrNotBuilt) {
		return plane, err
	}
	path, err := controlPlanePath(root)
	if err != nil {
		return ControlPlane{}, err
	}
	lock, err := filelock.Acquire(ctx, filepath.Join(Cache(root), "controlplane.lock"))
	if err != nil {
		return ControlPlane{}, err
	}
	defer lock.Release()
	// Another process may have built it while this one waited.
	if plane, err := FindControlPlane(root, assets); !errors.Is(err, ErrNotBuilt) {
		return plane, err
	}
	if err := compile(ctx, filepath.Join(root, "e2e", "controlplane"), path, progress); err != nil {
		return ControlPlane{}, fmt.Errorf("build of the control plane: %w", err)
	}
	if err := removeOthers(path); err != nil {
		return ControlPlane{}, err
	}
	return FindControlPlane(root, assets)
}

// controlPlanePath names the binary by what goes into it.
func controlPlanePath(root string) (string, error) {
	dir := filepath.Join(root, "e2e", "controlplane")
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	sources = append(sources, filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum"))
	slices.Sort(sources)
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.GOOS, runtime.GOARCH, flags())
	for _, source := range sources {
		content, err := os.ReadFile(source)
		if err != nil {
			return "", fmt.Errorf("sources of the control plane: %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", filepath.Base(source), len(content), content)
	}
	return filepath.Join(Cache(root), prefix+hex.EncodeToString(hash.Sum(nil))[:16]), nil
}

// flags gives the build flags. VCS stamping would link it anew after every commit.
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

// choose takes each component from assets where it is there, else from the
// binary that is all of them. It tells whether all were there.
func choose(path, assets string) (ControlPlane, bool, error) {
	complete := true
	pick := func(name string) (Program, error) {
		if assets == "" {
			complete = false
			return Program{path, name}, nil
		}
		own := filepath.Join(assets, name)
		_, err := os.Stat(own)
		if errors.Is(err, fs.ErrNotExist) {
			complete = false
			return Program{path, name}, nil
		}
		return Program{own}, err
	}
	if assets != "" {
		if _, err := os.Stat(assets); err != nil {
			return ControlPlane{}, false, fmt.Errorf("KUBEBUILDER_ASSETS: %w", err)
		}
	}
	var plane ControlPlane
	var errs [3]error
	plane.Etcd, errs[0] = pick("etcd")
	plane.APIServer, errs[1] = pick("kube-apiserver")
	plane.ControllerManager, errs[2] = pick("kube-controller-manager")
	return plane, complete, errors.Join(errs[:]...)
}

// removeOthers removes what earlier sources made: 130 MB each.
func removeOthers(path string) error {
	binaries, err := filepath.Glob(filepath.Join(filepath.Dir(path), prefix+"*"))
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
