package demo

import "syscall"

// apart keeps the terminal's Ctrl-C from the replicas, which end in order when the demo says so. When the demo is killed,
// they leave as if they had been asked to: the kernel sends the signal when the thread ends that started them.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
