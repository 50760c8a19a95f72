package network

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// ip runs commands of ip(8) in a namespace; empty is this process' own.
func ip(ctx context.Context, namespace string, commands ...string) error {
	args := []string{"-batch", "-"}
	if namespace != "" {
		args = append([]string{"-n", namespace}, args...)
	}
	return run(ctx, strings.Join(commands, "\n")+"\n", "ip", args...)
}

// nft runs a script of nft(8) in a namespace: all of it or nothing.
func nft(ctx context.Context, namespace, script string) error {
	return run(ctx, script, "ip", "netns", "exec", namespace, "nft", "-f", "-")
}

func run(ctx context.Context, input, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s%s", name, strings.Join(args, " "), err, out, input)
	}
	return nil
}
