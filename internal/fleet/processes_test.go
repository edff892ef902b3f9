package fleet

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// markName is the variable that every process of a fleet has in its environment.
const markName = "FLEET_MARK"

// family are the processes of one fleet, found by two signs, zombies left out: the program that they execute lies in the
// fleet's folder, which holds links to the shared ones (a supervisor has no environment), or they carry the fleet's mark
// in the environment that they were executed with (a job may execute anything).
type family struct {
	dir  string
	mark string
}

func (f family) alive() []int {
	var pids []int
	for _, pid := range allProcesses() {
		if f.has(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (f family) has(pid int) bool {
	program, err := os.Readlink(procFile(pid, "exe"))
	if err != nil {
		return false // it has ended, is a zombie, or is the kernel's
	}
	return strings.HasPrefix(program, f.dir+"/") || hasEntry(pid, markName+"="+f.mark)
}

func hasEntry(pid int, entry string) bool {
	environ, err := os.ReadFile(procFile(pid, "environ"))
	return err == nil && bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+entry+"\x00"))
}

// kill kills them until none is left.
func (f family) kill() {
	for pids := f.alive(); len(pids) > 0; pids = f.alive() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone already
		}
	}
}

func allProcesses() []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	pids := make([]int, 0, len(dirs))
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func procFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// stat is a process's state letter and parent; an empty state when it is gone.
func stat(pid int) (state string, parent int) {
	content, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return "", 0
	}
	// The name in parentheses may contain anything; what follows the last one is the state.
	_, rest, _ := strings.Cut(string(content[bytes.LastIndexByte(content, ')'):]), " ")
	fields := strings.Fields(rest)
	parent, _ = strconv.Atoi(fields[1]) // written by the kernel
	return fields[0], parent
}

func commandLine(pid int) string {
	content, _ := os.ReadFile(procFile(pid, "cmdline")) // gone: none
	return strings.ReplaceAll(string(content), "\x00", " ")
}
