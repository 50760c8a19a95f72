// Command capimanager builds Cluster API's core manager for the suite birth,
// shows how far it is, and prints its path.
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
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "capimanager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	manager, err := build.BuildCAPIManager(ctx, root, os.Stderr)
	if err != nil {
		return err
	}
	fmt.Println(manager.Path)
	return nil
}
