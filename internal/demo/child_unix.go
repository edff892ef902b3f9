//go:build unix && !linux

package demo

import "syscall"

// apart keeps the terminal's Ctrl-C from the replicas, which end in order when the demo says so.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
