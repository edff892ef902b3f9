package supervisor

import (
	"sync"
	"syscall"
)

// process is one line of the system's process table.
type process struct {
	pid, ppid, pgid int
	sid             int    // 0 where the table does not tell
	start           uint64 // when it was started, in a unit of the platform; tells two processes with one PID apart
	zombie          bool
}

// census is the process table. Reading it takes milliseconds on a busy machine, which is why cgroups are better.
type census struct {
	byPID        map[int]process
	candidates   []process // who can belong to a run
	environments map[int]environment
}

// environment is what a process was executed with, as far as it matters.
type environment struct {
	marks []string
	blank bool // it has none: it was cleared, or the process is in the middle of exec
}

func takeCensus(root int) *census {
	all := processes()
	c := &census{byPID: make(map[int]process, len(all)), environments: map[int]environment{}}
	for _, p := range all {
		c.byPID[p.pid] = p
	}
	for _, p := range c.byPID {
		if p.pid != root && (!orphansReturn || c.mayDescend(p, root)) {
			c.candidates = append(c.candidates, p)
		}
	}
	return c
}

// mayDescend gives the benefit of doubt to a process whose parent has ended meanwhile: it is being handed to root, or
// to somebody else's reaper.
func (c *census) mayDescend(p process, root int) bool {
	for range len(c.byPID) {
		if p.ppid == root {
			return true
		}
		parent, ok := c.byPID[p.ppid]
		if !ok {
			return p.ppid > 1
		}
		p = parent
	}
	return false
}

// environment is read once per census, and only of those that nothing else tells about.
func (c *census) environment(p process) environment {
	e, ok := c.environments[p.pid]
	if !ok {
		e = readEnvironment(p.pid)
		c.environments[p.pid] = e
	}
	return e
}

func exists(pid int) bool { return syscall.Kill(pid, 0) == nil }

// flights lets everybody who wants a census at about the same time share one: when the locks of many runs end at once,
// their trees have to be killed at once. Each caller gets a census that was begun after its call.
type flights struct {
	mu     sync.Mutex
	next   *flight // not begun
	flying bool
}

type flight struct {
	landed chan struct{}
	census *census
}

func (f *flights) join(take func() *census) *census {
	f.mu.Lock()
	if f.next == nil {
		f.next = &flight{landed: make(chan struct{})}
	}
	mine := f.next
	if !f.flying {
		f.flying = true
		go f.fly(take)
	}
	f.mu.Unlock()
	<-mine.landed
	return mine.census
}

func (f *flights) fly(take func() *census) {
	for {
		f.mu.Lock()
		this := f.next
		f.next = nil
		f.flying = this != nil
		f.mu.Unlock()
		if this == nil {
			return
		}
		this.census = take()
		close(this.landed)
	}
}
