package main

import (
	"context"
	"strings"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/harness"
)

// buildPrograms takes a quarter of an hour the first time.
func (d *demo) buildPrograms(ctx context.Context) error {
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
	if _, err := build.BuildCoreDNS(ctx, root, d.out); err != nil {
		return err
	}
	binary, err := harness.Binary(ctx)
	if err != nil {
		return err
	}
	d.printf("%s", binary)
	return nil
}
