package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockTerminal is the controlling terminal, for commands that talk to a person. The command is in a process group of its
// own, and only the foreground group may read from the terminal and is sent what Ctrl-C means; so the place is handed to
// it and taken back.
//
// When stdin, stdout and stderr are all a terminal, that happens at the start. Otherwise we may be in a pipeline whose
// other members need the place, and the command gets it when it is stopped for wanting it.
type lockTerminal struct{ file *os.File }

// openLockTerminal returns nil when there is no controlling terminal.
func openLockTerminal() *lockTerminal {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	// In the background, a message or the taking back would stop us, and nobody would renew the lock.
	signal.Ignore(syscall.SIGTTOU)
	return &lockTerminal{file}
}

func (t *lockTerminal) close() {
	if t != nil {
		_ = t.file.Close()
	}
}

// ours reports whether our process group is in the foreground.
func (t *lockTerminal) ours() bool {
	return t != nil && t.group() == syscall.Getpgrp()
}

func (t *lockTerminal) group() int {
	group, err := unix.IoctlGetInt(int(t.file.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// interactive reports whether the command should have the terminal from the start.
func (t *lockTerminal) interactive() bool {
	if !t.ours() {
		return false
	}
	for fd := range 3 {
		if _, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err != nil {
			return false
		}
	}
	return true
}

func (t *lockTerminal) give(group int) {
	_ = unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, group)
}

// takeBack undoes what was handed over, unless somebody else (a shell with job control) has taken the place since.
func (t *lockTerminal) takeBack(from int) {
	if t == nil {
		return
	}
	now := t.group()
	if now == from || now > 1 && errors.Is(syscall.Kill(-now, 0), syscall.ESRCH) {
		t.give(syscall.Getpgrp())
	}
}
