package pgserver

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// children lists the direct children of a process; those of PostgreSQL have none of their own. Linux tells in /proc: a
// small container has no ps.
func children(ctx context.Context, parent int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // a constant pattern without an error
	if len(stats) == 0 {
		return childrenByPS(ctx, parent)
	}
	var pids []int
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended since
		}
		// "12 (name, with any character) S 1 ...": number, name, state, parent.
		var pid, ppid int
		var state string
		end := bytes.LastIndexByte(content, ')')
		if _, err := fmt.Sscan(string(content), &pid); err != nil || end < 0 {
			continue
		}
		if _, err := fmt.Sscan(string(content[end+1:]), &state, &ppid); err == nil && ppid == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// childrenByPS uses what POSIX has: -A, and -o with an empty heading.
func childrenByPS(ctx context.Context, parent int) []int {
	out, err := exec.CommandContext(ctx, "ps", "-A", "-o", "pid=", "-o", "ppid=").Output()
	if err != nil {
		return nil
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		var pid, ppid int
		if _, err := fmt.Sscan(line, &pid, &ppid); err == nil && ppid == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}
