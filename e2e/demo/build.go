package main

import (
	"context"
	"strings"

	"github.com/fleetling/fleetling/e2e/build"
)

// buildControlPlane takes a quarter of an hour the first time.
func (d *demo) buildControlPlane(ctx context.Context) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	d.programs, err = build.BuildControlPlane(ctx, root, d.assets, d.out)
	if err != nil {
		return err
	}
	for _, program := range []build.Program{d.programs.Etcd, d.programs.APIServer, d.programs.ControllerManager} {
		d.printf("%s", strings.Join(program, " "))
	}
	return nil
}
