// Command demo shows fleetling at work, step by step, on clusters that it
// starts itself. It ends with exit code 1 if a step fails. With KEEP=1 it
// leaves all running at the end, until Ctrl-C, and prints how to go on by hand:
// kubeconfigs, the fleet repository, and the command for a signed commit.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// What goes wrong comes as an error; the clients' own words would only be in the way.
	log.SetLogger(logr.Discard())
	d := &demo{out: os.Stdout, assets: os.Getenv("KUBEBUILDER_ASSETS")}
	defer d.CleanUp()
	steps := d.steps()
	if os.Getenv("KEEP") == "1" {
		steps = append(steps, step{"Everything keeps running", d.keep})
	}
	if err := walk(ctx, d.out, steps); err != nil {
		return 1
	}
	return 0
}
