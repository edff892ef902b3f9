package supervisor

import "syscall"

// tree is everything a run started, wherever it went: cgroupTree, or groupTree where there are no cgroups.
type tree interface {
	// signal sends each signal to every process once.
	signal(sigs ...syscall.Signal)
	// kill sends SIGKILL to every process. It is repeated until alive says no.
	kill()
	// stun stops what can be stopped in one system call, ahead of kill. main is the main process, not reaped yet.
	stun(main int)
	// alive reports whether a process is left that is not a zombie.
	alive() bool
	// remove gives back what the tree took from the system. An error means: try again later.
	remove() error
}

// terminate asks politely. A stopped process would not hear it, hence SIGCONT.
func terminate(t tree) { t.signal(syscall.SIGTERM, syscall.SIGCONT) }
