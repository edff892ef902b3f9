//go:build !unix

package demo

import (
	"os"
	"syscall"
)

func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// private only looks whether the file is there: this platform's owners are not asked.
func private(path string) error {
	_, err := os.Lstat(path)
	return err //nolint:wrapcheck // it names the file
}

// polite is the way to end a process that this platform has.
func polite(p *os.Process) error { return p.Kill() }

func there(int) bool { return false }
