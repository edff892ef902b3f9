package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// cgroupTree is a cgroup (version 2) and all below it: membership cannot be left by setsid, by forking twice or by
// clearing the environment, and the kernel kills all members in one step that no fork can slip through.
type cgroupTree struct{ dir string }

func (t cgroupTree) signal(sigs ...syscall.Signal) {
	for _, pid := range t.members() {
		for _, sig := range sigs {
			_ = syscall.Kill(pid, sig) // it may be gone already
		}
	}
}

func (t cgroupTree) kill() {
	if os.WriteFile(filepath.Join(t.dir, "cgroup.kill"), []byte("1"), 0) == nil {
		return
	}
	// Before Linux 5.14 there is no cgroup.kill: freeze, so that nobody forks while we count. SIGKILL ends frozen ones.
	_ = os.WriteFile(filepath.Join(t.dir, "cgroup.freeze"), []byte("1"), 0)
	t.signal(syscall.SIGKILL)
}

// stun has no other way that would be faster.
func (t cgroupTree) stun(int) { t.kill() }

func (t cgroupTree) alive() bool {
	events, err := os.ReadFile(filepath.Join(t.dir, "cgroup.events"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return false // removed: only an empty one can be
	}
	return !bytes.Contains(events, []byte("populated 0"))
}

func (t cgroupTree) remove() error {
	for _, dir := range slices.Backward(t.dirs()) { // children first
		if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
			return fmt.Errorf("removing the cgroup %s: %w", dir, err)
		}
	}
	return nil
}

// dirs is the cgroup and those that the job made below it, parents first.
func (t cgroupTree) dirs() []string {
	var dirs []string
	_ = filepath.WalkDir(t.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // what has vanished meanwhile needs no attention
	})
	return dirs
}

func (t cgroupTree) members() []int {
	var pids []int
	for _, dir := range t.dirs() {
		list, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(list)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 { // 0 is a process of another PID namespace
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// newCgroup makes the cgroup of one run and opens it for clone3.
func newCgroup(parent string, run uint64, id string) (cgroupTree, *os.File, error) {
	t := cgroupTree{filepath.Join(parent, strconv.FormatUint(run, 10)+"-"+fileName(id))}
	if err := os.Mkdir(t.dir, 0o755); err != nil {
		return t, nil, fmt.Errorf("making a cgroup: %w", err)
	}
	f, err := os.Open(t.dir)
	if err != nil {
		_ = syscall.Rmdir(t.dir)
		return t, nil, fmt.Errorf("opening a cgroup: %w", err)
	}
	return t, f, nil
}

// fileName makes a harmless file name of a run's or a replica's name.
func fileName(name string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		default:
			return '_'
		}
	}, name)
	return safe[:min(len(safe), 100)]
}
