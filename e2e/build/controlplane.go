package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNotBuilt says that the control plane or CoreDNS has to be built first.
var ErrNotBuilt = errors.New("the control plane is not built: run `make control-plane` (15 minutes, once)")

// Program is a path and the arguments that come before all others.
type Program []string

// ControlPlane says which program is which component.
type ControlPlane struct {
	Etcd, APIServer, ControllerManager, Proxy Program
}

// FindControlPlane gives the control plane that BuildControlPlane has built, or
// ErrNotBuilt. assets is a folder in the manner of KUBEBUILDER_ASSETS, or
// empty: a component that is there, under its own name, is taken from there.
func FindControlPlane(root, assets string) (ControlPlane, error) {
	binary := kept{root: root, name: "controlplane"}
	path, err := binary.path()
	if err != nil {
		return ControlPlane{}, err
	}
	plane, complete, err := choose(path, assets)
	if err != nil || complete {
		return plane, err
	}
	if _, err := binary.find(); errors.Is(err, fs.ErrNotExist) {
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
	if _, err := (kept{root: root, name: "controlplane"}).build(ctx, progress); err != nil {
		return ControlPlane{}, err
	}
	return FindControlPlane(root, assets)
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
	var errs [4]error
	plane.Etcd, errs[0] = pick("etcd")
	plane.APIServer, errs[1] = pick("kube-apiserver")
	plane.ControllerManager, errs[2] = pick("kube-controller-manager")
	plane.Proxy, errs[3] = pick("kube-proxy")
	return plane, complete, errors.Join(errs[:]...)
}
