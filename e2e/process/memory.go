package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory is what a process takes of the machine's memory, in bytes.
type Memory struct {
	// Resident is what it has now, Peak the most it had.
	Resident, Peak int64
}

// Memory reads /proc/PID/status, see proc_pid_status(5).
func (p *Process) Memory() (Memory, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		return Memory{}, fmt.Errorf("memory of process %d: %w", p.Pid(), err)
	}
	var m Memory
	if m.Resident, err = kibibytes(string(content), "VmRSS:"); err != nil {
		return Memory{}, fmt.Errorf("memory of process %d: %w", p.Pid(), err)
	}
	if m.Peak, err = kibibytes(string(content), "VmHWM:"); err != nil {
		return Memory{}, fmt.Errorf("memory of process %d: %w", p.Pid(), err)
	}
	return m, nil
}

// kibibytes finds a line such as "VmRSS:	  1234 kB" and gives it in bytes. A
// process that has ended but was not waited for has no such line.
func kibibytes(status, key string) (int64, error) {
	for line := range strings.Lines(status) {
		rest, found := strings.CutPrefix(line, key)
		if !found {
			continue
		}
		number, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		return number << 10, err
	}
	return 0, fmt.Errorf("no %s", strings.TrimSuffix(key, ":"))
}
