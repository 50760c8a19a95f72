package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/sources/gittest"
)

// keep says how to go on by hand, and waits for Ctrl-C.
func (d *demo) keep(ctx context.Context) error {
	key, ok := d.fleet.Key.(*gittest.SSHKey)
	if !ok {
		return errors.New("the first signer's key is not an SSH key")
	}
	binary, err := harness.Binary(ctx)
	if err != nil {
		return err
	}
	for _, m := range d.members {
		d.printf("KUBECONFIG=%s kubectl get members,addons.fleetling.dev", m.KubeconfigFile())
		d.printf("%s status --kubeconfig %s", binary, m.KubeconfigFile())
	}
	d.printf("the fleet repository: %s (what is committed there on main is served)", d.fleet.Dir)
	d.printf("the signing key:      %s", key.Private)
	d.printf("edit a file there, for example %s, then:", settingsFile)
	d.printf("%s", signedCommit(d.fleet.Dir, key.Private, "by hand"))
	d.printf("Ctrl-C stops everything")
	<-ctx.Done()
	return nil
}

// signedCommit is the command that commits all of a working copy, signed, also
// for a person whose git has no name yet.
func signedCommit(dir, key, message string) string {
	return fmt.Sprintf("git -C %[1]s add --all && git -C %[1]s -c user.name=me -c user.email=me@example.com"+
		" -c gpg.format=ssh -c user.signingKey=%[2]s commit --gpg-sign --message '%[3]s'", dir, key, message)
}
