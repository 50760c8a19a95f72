package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// own is how the names of all our namespaces begin.
const own = "fleetling"

// owner is the process that a namespace belongs to: its id, and when it
// started, as ids are used again.
type owner struct {
	pid   int
	start uint64
}

func (o owner) prefix() string { return fmt.Sprintf("%s-%d-%d-", own, o.pid, o.start) }

// ownerOf reads the name of a namespace; false is that of somebody else.
func ownerOf(name string) (owner, bool) {
	parts := strings.SplitN(name, "-", 4)
	if len(parts) < 4 || parts[0] != own {
		return owner{}, false
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil {
		return owner{}, false
	}
	start, err := strconv.ParseUint(parts[2], 10, 64)
	return owner{pid: pid, start: start}, err == nil
}

// alive says whether the process still runs. What can't be read is taken for alive.
func (o owner) alive() bool {
	start, err := startOf(o.pid)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err != nil || start == o.start
}

// startOf is when a process started, in ticks since boot: field 22 of
// proc_pid_stat(5). The second field may hold anything, up to the last bracket.
func startOf(pid int) (uint64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	const at = 22 - 3
	if len(fields) <= at {
		return 0, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(fields))
	}
	return strconv.ParseUint(fields[at], 10, 64)
}

// removeLeftovers removes the namespaces whose owner is gone.
func removeLeftovers(ctx context.Context) error {
	// One of both may be left of a removal that was broken off.
	for _, dir := range []string{netns, etc} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, entry := range entries {
			owner, ours := ownerOf(entry.Name())
			if !ours || owner.alive() {
				continue
			}
			if err := remove(ctx, entry.Name()); err != nil {
				return fmt.Errorf("leftover: %w", err)
			}
		}
	}
	return nil
}
