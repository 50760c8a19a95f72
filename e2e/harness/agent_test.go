package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain is also the program that stands in for fleetling: it is run with
// fleetling's command line.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		os.Exit(standIn(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// standIn prints how it was run, leaves a file in its data folder, and ends
// when it is asked to: with the exit code that its config says.
func standIn(args []string) int {
	flags := map[string]string{}
	for _, arg := range args {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		flags[name] = value
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	left, _ := filepath.Glob(filepath.Join(flags["data-dir"], "*"))
	_ = os.WriteFile(filepath.Join(flags["data-dir"], "left"), nil, 0o600)
	fmt.Printf("up: %s env=%v found=%d\n", strings.Join(args, " "), os.Environ(), len(left))
	if flags["config"] == "crash" {
		return 3
	}
	<-asked
	fmt.Println("asked to end")
	if flags["config"] == "unhappy" {
		return 1
	}
	return 0
}

func TestAgentIsRunWithItsCommandLine(t *testing.T) {
	a, dir := agent(t, "good", "--log-level=debug", "--leader-elect")
	awaitLog(t, a, "up: ")
	logs, err := a.Logs()
	require.NoError(t, err)
	assert.Equal(t, "up: --config=good --kubeconfig=kube --data-dir="+dir+" --log-level=debug --leader-elect env=[] found=0\n", logs)
	require.NoError(t, a.Check())
	memory, err := a.Memory()
	require.NoError(t, err)
	assert.Greater(t, memory.Resident, int64(1<<20))

	require.NoError(t, a.Stop())
	awaitLog(t, a, "asked to end\n")
	<-a.Ended()
}

func TestAgentThatStopsBadlySaysWhatItPrinted(t *testing.T) {
	a, _ := agent(t, "unhappy")
	awaitLog(t, a, "up: ")
	err := a.Stop()
	require.ErrorContains(t, err, "agent: exit status 1")
	assert.ErrorContains(t, err, "asked to end")
}

func TestAgentThatCrashesIsNoticed(t *testing.T) {
	a, _ := agent(t, "crash")
	<-a.Ended()
	err := a.Check()
	exit, ok := errors.AsType[*exec.ExitError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, 3, exit.ExitCode())
	assert.ErrorContains(t, err, "up: --config=crash")
}

func TestKilledAgentIsNotAsked(t *testing.T) {
	a, _ := agent(t, "good")
	awaitLog(t, a, "up: ")
	a.Kill9()
	require.ErrorContains(t, a.Check(), "signal: killed")
	logs, err := a.Logs()
	require.NoError(t, err)
	assert.NotContains(t, logs, "asked to end")
}

func TestRestartKeepsTheDataFolderOrNot(t *testing.T) {
	for name, test := range map[string]struct {
		end   func(*Agent)
		empty bool
		want  []string
	}{
		"a restarted container":          {func(*Agent) {}, false, []string{"found=0", "asked to end", "found=1"}},
		"a new Pod":                      {func(*Agent) {}, true, []string{"found=0", "asked to end", "found=0"}},
		"a crash":                        {(*Agent).Kill9, false, []string{"found=0", "found=1"}},
		"a crash and a new Pod after it": {(*Agent).Kill9, true, []string{"found=0", "found=0"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := agent(t, "good")
			awaitLog(t, a, "up: ")
			test.end(a)
			require.NoError(t, a.Restart(test.empty))
			eventually(t, func() error {
				logs, err := a.Logs()
				if err != nil {
					return err
				}
				if got := strings.Count(logs, "up: "); got != 2 {
					return fmt.Errorf("it ran %d times", got)
				}
				return nil
			})
			logs, err := a.Logs()
			require.NoError(t, err)
			var got []string
			for line := range strings.Lines(logs) {
				words := strings.Fields(line)
				if strings.HasPrefix(line, "up: ") {
					got = append(got, words[len(words)-1])
				} else {
					got = append(got, strings.TrimSpace(line))
				}
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func TestAgentThatCanNotBeStartedIsAnError(t *testing.T) {
	_, err := StartAgent(AgentOptions{Binary: "/nonexistent/fleetling", DataDir: t.TempDir(), Log: filepath.Join(t.TempDir(), "log")})
	require.ErrorContains(t, err, "agent: process fleetling: ")
}

// agent starts the stand-in, with a data folder that is not made yet.
func agent(t *testing.T, config string, args ...string) (*Agent, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	a, err := StartAgent(AgentOptions{
		Binary: os.Args[0], Config: config, Kubeconfig: "kube", DataDir: dir, Args: args, Log: filepath.Join(t.TempDir(), "log"),
	})
	require.NoError(t, err)
	t.Cleanup(a.Kill9)
	return a, dir
}

func awaitLog(t *testing.T, a *Agent, text string) {
	t.Helper()
	eventually(t, func() error {
		logs, err := a.Logs()
		if err == nil && !strings.Contains(logs, text) {
			err = fmt.Errorf("no %q in %q", text, logs)
		}
		return err
	})
}
