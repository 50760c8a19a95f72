// Command fleetling is the agent and its tools, in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/net/http/httpproxy"

	"github.com/fleetling/fleetling/agent/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	hostname, _ := os.Hostname()
	os.Exit(cli.Run(ctx, os.Args[1:], cli.World{
		Out: os.Stdout, Err: os.Stderr,
		Proxy: *httpproxy.FromEnvironment(), Hostname: hostname,
		APIServer: os.Getenv("FLEETLING_API_SERVER"), NodeIP: os.Getenv("FLEETLING_NODE_IP"),
	}))
}
