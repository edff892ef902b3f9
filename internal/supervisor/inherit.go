package supervisor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A client with Options.Inherit gives its own surroundings to its one command: the descriptors that it was started with
// itself, under the numbers that they have, and the session with its controlling terminal. On the way the supervisor
// holds copies of the descriptors, from firstLegacy on; its argument says which numbers they will have.

// firstLegacy is the first of the supervisor's copies.
const firstLegacy = socketFD + 1

// maxLegacy bounds the numbers that are passed on: a table of descriptors is as long as its largest number.
const maxLegacy = 1024

// legacy is a descriptor on its way to the command.
type legacy struct{ fd, target int }

// inherited is what we were started with: what we opened ourselves is closed on exec.
func inherited() []int {
	var fds []int
	for _, fd := range openDescriptors() {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 && fd < maxLegacy {
			fds = append(fds, fd)
		}
	}
	slices.Sort(fds)
	return fds
}

// bequeath appends copies of what we inherited to the files of the supervisor, and returns its argument.
func bequeath(theirs *[]*os.File) (string, error) {
	var targets []string
	for _, fd := range inherited() {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return "", fmt.Errorf("copying descriptor %d: %w", fd, err)
		}
		*theirs = append(*theirs, os.NewFile(uintptr(dup), "inherited"))
		targets = append(targets, strconv.Itoa(fd))
	}
	return strings.Join(targets, ","), nil
}

// receiveLegacies finds the copies in the supervisor and keeps every other program from getting them.
func receiveLegacies(args []string) ([]legacy, error) {
	if len(args) == 0 {
		return nil, nil
	}
	var all []legacy
	for i, text := range strings.Split(args[0], ",") {
		target, err := strconv.Atoi(text)
		if err != nil || target < 0 || target >= maxLegacy {
			return nil, fmt.Errorf("%q is not a descriptor", text)
		}
		l := legacy{firstLegacy + i, target}
		syscall.CloseOnExec(l.fd)
		all = append(all, l)
	}
	return all, nil
}

var errNoLegacy = errors.New("what this supervisor had inherited was given to its first command")

// endow lays the child's descriptors out, with those of ours that it needs besides behind all others, and returns their
// numbers. A number that nobody has stays closed.
func endow(legacies []legacy, extra ...int) (files []uintptr, numbers []int) {
	const closed = ^uintptr(0)
	last := 2
	for _, l := range legacies {
		last = max(last, l.target)
	}
	files = slices.Repeat([]uintptr{closed}, last+1)
	for _, l := range legacies {
		files[l.target] = uintptr(l.fd)
	}
	for _, fd := range extra {
		numbers = append(numbers, len(files))
		files = append(files, uintptr(fd))
	}
	return files, numbers
}

func closeLegacies(legacies []legacy) {
	for _, l := range legacies {
		_ = syscall.Close(l.fd)
	}
}

// takeTerminal makes the calling process's group, which it leads, the foreground group of the controlling terminal. The
// thread must not be told off by SIGTTOU for it; harden unblocks it again. Without a terminal there is nothing to take.
func takeTerminal() {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer func() { _ = tty.Close() }()
	if blockTerminalStop() == nil {
		_ = unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCSPGRP, os.Getpid())
	}
}
