package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// grace is how long Stop waits for a process that was asked to end.
const grace = 30 * time.Second

// Command says what to run.
type Command struct {
	// Path is the program, Args are its arguments without its name.
	Path string
	Args []string
	// Env is the whole environment; nil is the one of this process.
	Env []string
	// Log is the file that standard output and error are appended to.
	Log string
	// Namespace is the network namespace that it runs in, with the files under
	// /etc/netns/NAME in place of those of /etc (ip-netns(8)); empty is the one
	// of this process.
	Namespace string
	// Contained gives it a PID namespace of its own: all that it has started
	// ends with it.
	Contained bool
}

// Process is a child that was started. Whoever started it stops it.
type Process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error

	grace time.Duration
}

// Start starts a child in a process group of its own, so that an interrupt at
// the terminal reaches only this process, which then stops its children.
func Start(c Command) (*Process, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("process %s: %w", filepath.Base(c.Path), err)
	}
	defer log.Close()
	args, err := c.arguments()
	if err != nil {
		return nil, fmt.Errorf("process %s: %w", filepath.Base(c.Path), err)
	}
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if c.Contained {
		attributes.Cloneflags = syscall.CLONE_NEWPID
	}
	p := &Process{
		cmd: &exec.Cmd{
			Path: args[0], Args: args, Env: c.Env, Stdout: log, Stderr: log, SysProcAttr: attributes,
		},
		log:   c.Log,
		done:  make(chan struct{}),
		grace: grace,
	}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("process %s: %w", filepath.Base(c.Path), err)
	}
	return p, nil
}

// arguments is the whole command line, its program first. ip(8) enters the
// namespace and becomes the program: the process id stays.
func (c Command) arguments() ([]string, error) {
	args := append([]string{c.Path}, c.Args...)
	if c.Namespace == "" {
		return args, nil
	}
	ip, err := exec.LookPath("ip")
	if err != nil {
		return nil, err
	}
	return append([]string{ip, "netns", "exec", c.Namespace}, args...), nil
}

// run starts the child and waits for it on one thread that it keeps: the death
// signal is sent when the thread that started the child ends, not when
// the process does, so that thread must live as long as the child.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	err := p.cmd.Start()
	started <- err
	if err == nil {
		p.err = p.cmd.Wait()
	}
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Log is the file with what the process printed.
func (p *Process) Log() string { return p.log }

// Alive says whether the process has not ended yet.
func (p *Process) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Wait waits for the end of the process and gives how it ended: nil for
// exit code 0.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Kill ends the process at once, as `kill -9` does: its own children get
// nothing. It returns when the process is gone.
func (p *Process) Kill() {
	// An error says that it has ended already.
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Stop asks the process to end, ends its whole group if it doesn't, and
// gives how it ended: nil for exit code 0.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return p.Wait()
	}
	timer := time.NewTimer(p.grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	}
	// What it has started and left behind goes with it.
	_ = syscall.Kill(-p.Pid(), syscall.SIGKILL)
	return p.Wait()
}
