package supervisor

import "syscall"

// process is one line of the system's process table.
type process struct {
	pid, ppid, pgid int
	sid             int    // 0 where the table does not tell
	start           uint64 // when it was started, in a unit of the platform; tells two processes with one PID apart
	zombie          bool
}

// census is the process table at about one instant. Reading it takes milliseconds on a busy machine, which is why
// cgroups are better.
type census struct {
	byPID      map[int]process
	candidates []process // who can belong to a run
	marks      map[int]map[string]bool
}

func takeCensus(root int) *census {
	all := processes()
	c := &census{byPID: make(map[int]process, len(all)), marks: map[int]map[string]bool{}}
	for _, p := range all {
		c.byPID[p.pid] = p
	}
	for _, p := range all {
		if p.pid != root && (!orphansReturn || c.descends(p, root)) {
			c.candidates = append(c.candidates, p)
		}
	}
	return c
}

func (c *census) descends(p process, root int) bool {
	for range len(c.byPID) {
		if p.ppid == root {
			return true
		}
		parent, ok := c.byPID[p.ppid]
		if !ok {
			return false
		}
		p = parent
	}
	return false
}

// hasMark reads the environment with which p was executed, once per census.
func (c *census) hasMark(p process, mark string) bool {
	entries, ok := c.marks[p.pid]
	if !ok {
		entries = environment(p.pid)
		c.marks[p.pid] = entries
	}
	return entries[mark]
}

func exists(pid int) bool { return syscall.Kill(pid, 0) == nil }
