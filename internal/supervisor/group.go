package supervisor

import (
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

// rounds bounds how often a tree that still grows is stopped before it is killed.
const rounds = 5

// unknownFor is how long exec may take.
const unknownFor = 2 * time.Second

// family finds the members of runs where there are no cgroups. On Linux root is a sub-reaper: everything that a run
// starts stays a descendant of it, however often it forks, so only descendants are ever looked at, and a PID or an
// environment that somebody else reuses cannot be taken for ours.
type family struct {
	root int
	sole bool // root has one run only: every descendant belongs to it

	mu   sync.Mutex
	runs map[int]*groupTree // by PID of the main process

	flights flights
}

// census reads the process table, as it is now or a little later.
func (f *family) census() *census {
	return f.flights.join(func() *census { return takeCensus(f.root) })
}

func newFamily(root int) *family { return &family{root: root, runs: make(map[int]*groupTree)} }

// groupTree is a run without a cgroup: the main process, its session and process group, their descendants, processes
// with the run's mark in their environment, and whatever was once seen to be one of these.
type groupTree struct {
	family *family
	main   process
	mark   string
	known  map[int]uint64 // start time by PID
}

// adopt makes a main process known. mark is an entry of its environment, or empty.
func (f *family) adopt(pid int, start uint64, mark string) *groupTree {
	t := &groupTree{
		family: f, main: process{pid: pid, start: start}, mark: mark,
		known: map[int]uint64{pid: start},
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs[pid] = t
	return t
}

// learn notes where processes belong while their ancestors are alive to tell.
func (f *family) learn() {
	f.mu.Lock()
	trees := make([]*groupTree, 0, len(f.runs))
	for _, t := range f.runs {
		trees = append(trees, t)
	}
	f.mu.Unlock()
	c := f.census()
	for _, t := range trees {
		t.members(c)
	}
}

// members is every process of the run in the census, zombies included.
func (t *groupTree) members(c *census) []process {
	t.family.mu.Lock()
	defer t.family.mu.Unlock()
	var found []process
	for _, p := range c.candidates {
		if t.owns(p, c) {
			t.known[p.pid] = p.start
			found = append(found, p)
		}
	}
	return found
}

// owns walks up from p until something decides. The census has no cycles, but it is not one instant either.
func (t *groupTree) owns(p process, c *census) bool {
	for range len(c.byPID) {
		if other, ok := t.family.runs[p.pid]; ok && other != t && other.main.start == p.start {
			return false
		}
		if t.isSeed(p, c) {
			return true
		}
		parent, ok := c.byPID[p.ppid]
		if !ok || parent.pid == t.family.root || parent.pid == p.pid {
			return ok && t.family.sole && parent.pid == t.family.root
		}
		p = parent
	}
	return false
}

func (t *groupTree) isSeed(p process, c *census) bool {
	if start, ok := t.known[p.pid]; ok && start == p.start {
		return true
	}
	return p.pgid == t.main.pid || p.sid == t.main.pid || t.mark != "" && slices.Contains(c.environment(p).marks, t.mark)
}

func (t *groupTree) signal(sigs ...syscall.Signal) { each(t.members(t.family.census()), sigs...) }

func each(members []process, sigs ...syscall.Signal) {
	for _, p := range members {
		for _, sig := range sigs {
			if !p.zombie {
				_ = syscall.Kill(p.pid, sig) // it may be gone already
			}
		}
	}
}

// kill stops everything first, until a census finds nobody new: what is stopped cannot fork away while the rest is
// being killed. Whole process groups are signalled at once, which no fork can slip through either.
func (t *groupTree) kill() {
	seen := map[process]bool{}
	for range rounds {
		before := len(seen)
		for _, p := range t.members(t.family.census()) {
			p.ppid = 0 // changes when its parent ends
			seen[p] = true
		}
		t.eachGroup(seen, syscall.SIGSTOP)
		if len(seen) == before {
			break
		}
	}
	t.eachGroup(seen, syscall.SIGKILL)
}

func (t *groupTree) eachGroup(members map[process]bool, sig syscall.Signal) {
	groups := map[int]bool{}
	for p := range members {
		if !p.zombie && p.pgid > 1 && p.pgid != syscall.Getpgrp() {
			groups[p.pgid] = true
		}
	}
	for pgid := range groups {
		_ = syscall.Kill(-pgid, sig)
	}
	each(slices.Collect(maps.Keys(members)), sig)
}

// stun only stops the main process group: the dead have no descendants, by whom others are to be found.
func (t *groupTree) stun(main int) { _ = syscall.Kill(-main, syscall.SIGSTOP) }

func (t *groupTree) alive() bool {
	c := t.family.census()
	return slices.ContainsFunc(t.members(c), func(p process) bool { return !p.zombie }) || t.family.hasUnknown(c)
}

// hasUnknown reports whether an orphan is in the middle of exec, when its environment cannot be read. One that keeps
// an empty environment for longer has cleared it and is nobody's.
func (f *family) hasUnknown(c *census) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := boottime.Now()
	return slices.ContainsFunc(c.candidates, func(p process) bool {
		return p.ppid == f.root && f.runs[p.pid] == nil && !p.zombie && p.age(now) < unknownFor && c.environment(p).blank
	})
}

func (t *groupTree) remove() error {
	t.family.mu.Lock()
	defer t.family.mu.Unlock()
	if t.family.runs[t.main.pid] == t {
		delete(t.family.runs, t.main.pid)
	}
	return nil
}
