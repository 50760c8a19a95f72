package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// interval is the time between two lines of progress.
const interval = 5 * time.Second

// source is a program's package, as the module in dir sees it.
type source struct{ name, dir, pkg string }

// compile builds a program into path.
func compile(ctx context.Context, s source, path string, progress io.Writer) error {
	report := &report{name: s.name, out: progress, start: time.Now()}
	stop := report.every(interval)
	defer stop()

	list := goCommand(ctx, s.dir, "list", "-deps", s.pkg)
	var packages strings.Builder
	list.Stdout = &packages
	if err := run(list, report); err != nil {
		return err
	}
	report.expect(strings.Count(packages.String(), "\n"))
	// Built beside its place and renamed: what has the name is whole.
	unfinished := filepath.Join(filepath.Dir(path), "unfinished-"+filepath.Base(path))
	defer os.Remove(unfinished)
	args := append(append([]string{"build", "-v"}, flags()...), "-o", unfinished, s.pkg)
	if err := run(goCommand(ctx, s.dir, args...), report); err != nil {
		return err
	}
	report.line()
	return os.Rename(unfinished, path)
}

// goCommand is the go tool in dir, ended with all that it started when ctx ends.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// GOGC: a third less time for the price of memory, of which there is enough.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOGC=400")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = interval
	return cmd
}

// run runs a command whose standard error the report reads.
func run(cmd *exec.Cmd, report *report) error {
	// The death signal comes when the thread that started the child ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.Stderr = report
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s in %s: %w\n%s", cmd.Args[1], cmd.Dir, err, report.rest())
	}
	return nil
}
