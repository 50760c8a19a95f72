// Command capi builds programs of Cluster API for the suite birth, shows how far
// it is, and prints their paths: "manager" is the core manager, "providers" are
// those that run beside it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/fleetling/fleetling/e2e/build"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "capi:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want manager or providers, got %q", args)
	}
	root, err := build.Root()
	if err != nil {
		return err
	}
	managers, err := buildAll(ctx, root, args[0])
	if err != nil {
		return err
	}
	for _, m := range managers {
		fmt.Println(m.Path)
	}
	return nil
}

func buildAll(ctx context.Context, root, what string) ([]build.CAPIManager, error) {
	switch what {
	case "manager":
		manager, err := build.BuildCAPIManager(ctx, root, os.Stderr)
		return []build.CAPIManager{manager}, err
	case "providers":
		p, err := build.BuildCAPIProviders(ctx, root, os.Stderr)
		return []build.CAPIManager{p.Bootstrap, p.ControlPlane, p.Infrastructure}, err
	default:
		return nil, fmt.Errorf("want manager or providers, got %s", what)
	}
}
