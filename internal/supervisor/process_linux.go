package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// orphansReturn: a sub-reaper becomes the parent of whatever its descendants leave behind.
const orphansReturn = true

func processes() []process {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1) // what was read before an error is still true
	all := make([]process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, found, err := readProcess(pid); err == nil && found {
			all = append(all, p)
		}
	}
	return all
}

// readProcess reads proc_pid_stat(5).
func readProcess(pid int) (p process, found bool, err error) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return process{}, false, nil
	}
	if err != nil {
		return process{}, false, fmt.Errorf("reading the state of process %d: %w", pid, err)
	}
	// The command's name is in parentheses and may hold anything, parentheses and blanks included.
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	if len(fields) < 20 {
		return process{}, false, fmt.Errorf("reading the state of process %d: %d fields", pid, len(fields))
	}
	p = process{pid: pid, zombie: fields[0] == "Z" || fields[0] == "X"}
	p.ppid, _ = strconv.Atoi(fields[1])
	p.pgid, _ = strconv.Atoi(fields[2])
	p.sid, _ = strconv.Atoi(fields[3])
	p.start, _ = strconv.ParseUint(fields[19], 10, 64)
	return p, true, nil
}

func startTime(pid int) (uint64, bool) {
	p, found, err := readProcess(pid)
	return p.start, found && err == nil
}

func environment(pid int) map[string]bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	entries := map[string]bool{}
	for entry := range bytes.SplitSeq(text, []byte{0}) {
		if bytes.HasPrefix(entry, []byte(markName)) {
			entries[string(entry)] = true
		}
	}
	return entries
}

// inCgroup reports whether a process, a zombie included, is or was below dir of the version 2 hierarchy.
func inCgroup(pid int, dir string) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return false
	}
	path, ok := ownCgroup(string(text))
	_, below, found := strings.Cut(dir, "/"+cgroupFolder+"/")
	return ok && found && strings.Contains(path, "/"+cgroupFolder+"/"+below+"/")
}
