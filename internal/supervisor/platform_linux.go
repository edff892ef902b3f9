package supervisor

import (
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// weaknesses is what Linux does not guarantee without cgroups, and why there are none.
func weaknesses(why string) []string {
	return []string{
		"The processes of a job are found by session, descent and environment, not by cgroup (" + why + "): one that leaves its session, forks away and clears its environment can survive the end of its run.",
		"When the daemon and its supervisor are killed together, only the first process of each job is killed with them.",
	}
}

// ownExecutable is the very file we run, even when another version has been installed over it since.
func ownExecutable() (string, error) { return "/proc/self/exe", nil }

// becomeReaper makes us the parent of everything that our descendants leave behind.
func becomeReaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming a sub-reaper: %w", err)
	}
	return nil
}

// nameProcess sets what ps and top show, which would be "exe" otherwise.
func nameProcess(name string) {
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0)
}

// childAttr starts a child in a session of its own, directly in its cgroup, and killed when the forking thread dies.
func childAttr(cgroup *os.File) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if cgroup != nil {
		attr.UseCgroupFD = true
		attr.CgroupFD = int(cgroup.Fd())
	}
	return attr
}

func openDescriptors() []int {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	own := int(dir.Fd())
	_ = dir.Close()
	var fds []int
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd != own {
			fds = append(fds, fd)
		}
	}
	return fds
}

// handleIgnored takes over signals that we were started with as ignored (nohup does that), because ignored ones stay
// ignored across exec and handled ones do not.
func handleIgnored(into chan os.Signal) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(status)) {
		mask, ok := strings.CutPrefix(line, "SigIgn:")
		if !ok {
			continue
		}
		bits, _ := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
		for n := range 64 {
			if bits&(1<<n) != 0 {
				signal.Notify(into, syscall.Signal(n+1))
			}
		}
	}
}

// harden prepares the calling thread, which is the one that will exec: no privileges from set-user-ID files, death
// with the supervisor, no blocked signals, no descriptors above stderr but those to keep. Who runs a command in
// its own place (Options.Inherit) could run sudo without us too.
func harden(keep []int, noNewPrivileges bool) error {
	if err := dieWithParent(); err != nil {
		return err
	}
	if noNewPrivileges {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("setting no_new_privs: %w", err)
		}
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil); err != nil {
		return fmt.Errorf("unblocking signals: %w", err)
	}
	if closeBut(keep) == nil {
		return nil
	}
	for _, fd := range openDescriptors() { // Linux before 5.11
		if fd > 2 && !slices.Contains(keep, fd) {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}

// dieWithParent is for the calling thread.
func dieWithParent() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("setting the parent-death signal: %w", err)
	}
	return nil
}

// closeBut closes on exec what lies between stderr and the descriptors to keep, which ascend, and behind them.
func closeBut(keep []int) error {
	first := uint(3)
	for _, fd := range append(slices.Clone(keep), math.MaxInt32) {
		if next := uint(fd); next > first {
			if err := unix.CloseRange(first, next-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
				return err
			}
		}
		first = max(first, uint(fd)+1)
	}
	return nil
}

// blockTerminalStop lets the calling thread change the terminal from the background.
func blockTerminalStop() error {
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGTTOU - 1)
	return unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
}
