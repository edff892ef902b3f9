package supervisor

import (
	"time"

	"golang.org/x/sys/unix"
)

// orphansReturn: macOS has no sub-reaper, orphans go to launchd.
const orphansReturn = false

const stateZombie = 5 // SZOMB of sys/proc.h

// processes is one call, and the kernel hands out its table in one piece.
func processes() []process {
	table, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	all := make([]process, 0, len(table))
	for i := range table {
		all = append(all, fromKinfo(&table[i]))
	}
	return all
}

func fromKinfo(k *unix.KinfoProc) process {
	return process{
		pid: int(k.Proc.P_pid), ppid: int(k.Eproc.Ppid), pgid: int(k.Eproc.Pgid),
		start:  uint64(k.Proc.P_starttime.Nano()),
		zombie: k.Proc.P_stat == stateZombie,
	}
}

func startTime(pid int) (uint64, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, false
	}
	return fromKinfo(k).start, true
}

func readEnvironment(int) environment { return environment{} }

// age does not matter where environments are not read.
func (process) age(time.Duration) time.Duration { return never }

func inCgroup(int, string) bool { return false }
