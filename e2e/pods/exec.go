package pods

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"k8s.io/client-go/tools/cache"
)

// Result is how a command that was run in a Pod has ended.
type Result struct {
	Stdout, Stderr string
	// Code is its exit code; 0 is success.
	Code int
}

// Exec runs a command in a Pod, in the environment of its first container that
// runs here, as `kubectl exec` does. A command that ends with another code than
// 0 is no error, one that can't be started or that ctx ends is.
func (r *Runtime) Exec(ctx context.Context, namespace, name string, command ...string) (Result, error) {
	key := cache.NewObjectName(namespace, name)
	r.mu.Lock()
	p := r.pods[key]
	r.mu.Unlock()
	if p == nil {
		return Result{}, fmt.Errorf("exec in %s: the Pod doesn't run here", key)
	}
	result, err := p.exec(ctx, command)
	if err != nil {
		return Result{}, fmt.Errorf("exec in %s: %w", key, err)
	}
	return result, nil
}

func (p *pod) exec(ctx context.Context, command []string) (Result, error) {
	c := runnable(p.object)[0]
	c.Command, c.Args = command, nil
	wanted, err := p.command(c)
	if err != nil {
		return Result{}, err
	}
	args := append([]string{"netns", "exec", wanted.Namespace, wanted.Path}, wanted.Args...)
	cmd := exec.CommandContext(ctx, "ip", args...)
	var stdout, stderr strings.Builder
	cmd.Env, cmd.Stdout, cmd.Stderr = wanted.Env, &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWPID}
	// The death signal comes when the thread that started the child ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	result := Result{Stdout: stdout.String(), Stderr: stderr.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		result.Code, err = exit.ExitCode(), nil
	}
	return result, err
}
