//go:build !linux

package supervisor

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// mostDescriptors is how far we look for descriptors that are open; higher ones are unusual.
const mostDescriptors = 256

// weaknesses is what this platform does not guarantee, whose reason is always the platform.
func weaknesses(string) []string {
	return []string{
		"This platform has neither cgroups nor a sub-reaper: a process that leaves its job's process group, and whose parent has ended, is not found and can survive the end of its run.",
		"This platform has no parent-death signal: when the daemon and its supervisor are killed together, running commands go on.",
	}
}

func ownExecutable() (string, error) { return os.Executable() }

func becomeReaper() error { return nil }

func nameProcess(string) {}

func childAttr(*os.File) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func openDescriptors() []int {
	fds := make([]int, 0, mostDescriptors)
	for fd := range mostDescriptors {
		fds = append(fds, fd)
	}
	return fds
}

func handleIgnored(into chan os.Signal) {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(into, s)
		}
	}
}

func harden(keep []int, _ bool) error {
	for _, fd := range openDescriptors() {
		if fd > 2 && !slices.Contains(keep, fd) {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}

// dieWithParent has no means here, see weaknesses.
func dieWithParent() error { return nil }

// blockTerminalStop ignores the signal: a mask of one thread is out of reach here, and exec follows.
func blockTerminalStop() error {
	signal.Ignore(syscall.SIGTTOU)
	return nil
}
