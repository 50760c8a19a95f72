// Command controlplane builds the control plane and the CoreDNS that the demo
// and the suites run, shows how far it is, and prints which program is which
// component.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/fleetling/fleetling/e2e/build"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	plane, err := build.BuildControlPlane(ctx, root, os.Getenv("KUBEBUILDER_ASSETS"), os.Stderr)
	if err != nil {
		return err
	}
	coredns, err := build.BuildCoreDNS(ctx, root, os.Stderr)
	if err != nil {
		return err
	}
	for _, program := range []build.Program{plane.Etcd, plane.APIServer, plane.ControllerManager, plane.Proxy, {coredns}} {
		fmt.Println(strings.Join(program, " "))
	}
	return nil
}
