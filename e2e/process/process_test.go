package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parent is set, to a folder, in the process that TestChildDiesWithItsParent kills.
const parent = "FLEETLING_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parent); dir != "" {
		beParent(dir)
	}
	os.Exit(m.Run())
}

// beParent starts a child, writes down its id, and stays until it is killed.
func beParent(dir string) {
	p, err := Start(Command{Path: "/bin/sleep", Args: []string{"1000"}, Log: filepath.Join(dir, "log")})
	if err != nil {
		panic(err)
	}
	unfinished := filepath.Join(dir, "unfinished")
	if err := os.WriteFile(unfinished, []byte(strconv.Itoa(p.Pid())), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(unfinished, filepath.Join(dir, "pid")); err != nil {
		panic(err)
	}
	<-p.Done()
}

func TestChildDiesWithItsParent(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), parent+"="+dir)
	require.NoError(t, cmd.Start())
	child := readPid(t, filepath.Join(dir, "pid"))
	assert.True(t, alive(child))

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	eventually(t, func() bool { return !alive(child) })
}

func TestWaitGivesHowAProcessEnded(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		code   int
	}{
		"exit code 0 is no error":  {"exit 0", 0},
		"any other is given by it": {"exit 3", 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := shell(t, test.script)
			err := p.Wait()
			assert.False(t, p.Alive())
			if test.code == 0 {
				require.NoError(t, err)
				return
			}
			exit, ok := errors.AsType[*exec.ExitError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, test.code, exit.ExitCode())
		})
	}
}

func TestStopAsksAndWaits(t *testing.T) {
	p := shell(t, `trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.05; done`)
	eventually(t, func() bool { return Tail(p.Log()) == "up" })
	require.NoError(t, p.Stop())
	assert.Equal(t, "up\nasked", Tail(p.Log()))
	assert.False(t, p.Alive())
	require.NoError(t, p.Stop(), "a second time it says the same")
}

func TestStopEndsWhatDoesNotListen(t *testing.T) {
	p := shell(t, `trap '' TERM; echo up; while :; do sleep 0.05; done`)
	p.grace = 10 * time.Millisecond
	eventually(t, func() bool { return Tail(p.Log()) == "up" })
	require.ErrorContains(t, p.Stop(), "killed")
}

func TestStopEndsWhatTheProcessLeftBehind(t *testing.T) {
	p := shell(t, `sleep 1000 & echo $!; trap 'exit 0' TERM; while :; do sleep 0.05; done`)
	left := logPid(t, p)
	require.NoError(t, p.Stop())
	eventually(t, func() bool { return !alive(left) })
}

func TestKillEndsOnlyTheProcessItself(t *testing.T) {
	p := shell(t, `sleep 1000 & echo $!; while :; do sleep 0.05; done`)
	left := logPid(t, p)
	p.Kill()
	assert.False(t, p.Alive())
	assert.True(t, alive(left), "as `kill -9` does")
	require.NoError(t, syscall.Kill(left, syscall.SIGKILL))
	p.Kill()
}

func TestEnvironmentIsTheOneAskedFor(t *testing.T) {
	t.Setenv("FLEETLING_TEST", "own")
	for name, test := range map[string]struct {
		env  []string
		want string
	}{
		"nil is that of this process": {nil, "own"},
		"empty is none":               {[]string{}, ""},
		"others are taken as they are": {
			[]string{"FLEETLING_TEST=given"}, "given",
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			p, err := Start(Command{Path: "/bin/sh", Args: []string{"-c", `echo "$FLEETLING_TEST"`}, Env: test.env, Log: log})
			require.NoError(t, err)
			require.NoError(t, p.Wait())
			assert.Equal(t, test.want, Tail(log))
		})
	}
}

func TestContainedProcessTakesAllThatItStartedWithIt(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := Start(Command{
		Path: "/bin/sh", Args: []string{"-c", `setsid sleep 1000 & echo $$; while :; do sleep 0.05; done`}, Log: log, Contained: true,
	})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	eventually(t, func() bool { return Tail(log) == "1" })
	var children []string
	eventually(t, func() bool {
		content, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.Pid()), "task", strconv.Itoa(p.Pid()), "children"))
		children = strings.Fields(string(content))
		return len(children) == 2
	})
	left, err := strconv.Atoi(children[0])
	require.NoError(t, err)
	p.Kill()
	eventually(t, func() bool { return !alive(left) })
}

func TestProcessRunsInItsNamespace(t *testing.T) {
	name := "fleetlingtest-process-" + strconv.Itoa(os.Getpid())
	require.NoError(t, exec.CommandContext(t.Context(), "ip", "netns", "add", name).Run())
	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "ip", "netns", "delete", name).Run() })
	log := filepath.Join(t.TempDir(), "log")
	p, err := Start(Command{Path: "/bin/sh", Args: []string{"-c", "readlink /proc/self/ns/net; echo $$; exec sleep 1000"}, Log: log, Namespace: name})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	eventually(t, func() bool { return strings.HasSuffix(Tail(log), "\n"+strconv.Itoa(p.Pid())) })
	own, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	inside, _, _ := strings.Cut(Tail(log), "\n")
	assert.NotEqual(t, own, inside)
	assert.Regexp(t, `^net:\[\d+\]$`, inside)

	missing, err := Start(Command{Path: "/bin/true", Log: log, Namespace: name + "-missing"})
	require.NoError(t, err)
	require.Error(t, missing.Wait())
	assert.Contains(t, Tail(log), name+"-missing")
}

func TestProgramThatIsNotThereIsNamed(t *testing.T) {
	_, err := Start(Command{Path: "/nonexistent/kube-apiserver", Log: filepath.Join(t.TempDir(), "log")})
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "process kube-apiserver")
}

func TestErrorsCarryTheLastLines(t *testing.T) {
	p := shell(t, `i=0; while [ $i -lt 5000 ]; do i=$((i+1)); echo "line $i"; done`)
	require.NoError(t, p.Wait())
	err := p.Explain(os.ErrClosed)
	require.ErrorIs(t, err, os.ErrClosed)
	assert.Contains(t, err.Error(), p.Log())
	lines := strings.Split(err.Error(), "\n")[1:]
	assert.Len(t, lines, tailLines)
	assert.Equal(t, "line 4976", lines[0])
	assert.Equal(t, "line 5000", lines[len(lines)-1])
}

func TestTailOfALongLineIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", 3*tailBytes)+"\nlast\n"), 0o600))
	assert.Equal(t, "last", Tail(path))
	assert.Contains(t, Tail(path+".gone"), "no such file")
}

func TestMemoryOfARunningProcess(t *testing.T) {
	// No exec: while a process takes on a new image its memory is almost none.
	p := shell(t, `echo up; sleep 1000; echo down`)
	eventually(t, func() bool { return Tail(p.Log()) == "up" })
	memory, err := p.Memory()
	require.NoError(t, err)
	assert.Greater(t, memory.Resident, int64(100<<10), "bytes")
	assert.GreaterOrEqual(t, memory.Peak, memory.Resident)
	p.Kill()
	_, err = p.Memory()
	require.Error(t, err, "a process that has ended takes none, which is not 0")
}

func shell(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(Command{Path: "/bin/sh", Args: []string{"-c", script}, Log: filepath.Join(t.TempDir(), "log")})
	require.NoError(t, err)
	t.Cleanup(func() {
		// Also what the script has started.
		_ = syscall.Kill(-p.Pid(), syscall.SIGKILL)
		p.Kill()
	})
	return p
}

// logPid reads the id that the process prints first.
func logPid(t *testing.T, p *Process) int {
	t.Helper()
	return readPid(t, p.Log())
}

func readPid(t *testing.T, path string) int {
	t.Helper()
	var pid int
	eventually(t, func() bool {
		content, _ := os.ReadFile(path)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(content)))
		return pid != 0
	})
	return pid
}

// alive says whether a process runs; one that has ended and that nobody waits for doesn't.
func alive(pid int) bool {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(content), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, 10*time.Millisecond)
}
