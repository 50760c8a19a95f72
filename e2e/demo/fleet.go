package main

import (
	"context"

	"github.com/fleetling/fleetling/e2e/world"
)

// settingsFile is the file of the fleet repository that the demo's commits
// change, setting the key in it, and greeting the value that it has at first.
const (
	settingsFile = "addons/platform/base/kustomization.yaml"
	setting      = "GREETING"
	greeting     = "hello"
)

// makeFleet copies the example, with a key made now for its signer.
func (d *demo) makeFleet(context.Context) error {
	d.fleet = world.NewFleet(d)
	d.fleet.Load(d, world.Example(d))
	d.head = d.fleet.Push("the example fleet")
	d.printf("manifests/example, with signers/%s", d.fleet.Key.File())
	d.printf("%s at %s", d.fleet.Server.URL, d.head[:12])
	return nil
}

// greet changes the setting in the working copy.
func (d *demo) greet(from, to string) {
	d.fleet.Replace(d, settingsFile, setting+"="+from+"\n", setting+"="+to+"\n")
}
