package supervisor

import (
	"os"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

// The watch over the supervisor.
const (
	pingEvery = 8  // ticks
	maxSilent = 10 // pings without an answer; counted, not timed, so that our own sleep does not count
	// A tree that lives this long after its deadline is killed by us; after stuckAfter the supervisor is, too.
	overdueAfter = 50 * time.Millisecond
	// complainEvery is how often a tree that does not die is logged.
	complainEvery = 10 * time.Second
)

//nolint:gochecknoglobals // a constant, but for tests on a machine that lets a good supervisor wait for so long
var stuckAfter = 5 * time.Second

// watch looks after a supervisor that is alive but does not do its work (stopped, swapped out): the deadline of a run
// holds all the same.
func (s *session) watch() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for n := 0; ; n++ {
		if len(s.all()) == 0 {
			select { // an idle daemon does not wake up
			case <-s.busy:
			case <-s.ended:
				return
			}
		}
		select {
		case <-ticker.C:
		case <-s.ended:
			return
		}
		if n%pingEvery == 0 && s.ping() || s.killOverdue(boottime.Now()) {
			s.log.Error("supervisor is stuck, killing it", zap.Int("pid", s.process.Pid))
			_ = s.process.Kill()
		}
	}
}

// ping reports whether the supervisor has been silent for too long.
func (s *session) ping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unanswered++
	s.orders.push(order{Op: orderPing})
	return s.unanswered > maxSilent
}

// killOverdue kills what the supervisor should have killed, and reports whether it has been too long ago.
func (s *session) killOverdue(now time.Duration) (stuck bool) {
	for _, p := range s.all() {
		late := p.overdue(now)
		if late < overdueAfter {
			continue
		}
		if info := p.info(); info != nil {
			treeOf(info, markOf(p.spec.Env), newFamily(s.process.Pid)).kill()
		}
		stuck = stuck || late >= stuckAfter
	}
	return stuck
}

// treeOf is the tree of a run as another process than its supervisor can reach it.
func treeOf(info *started, mark string, f *family) tree {
	if info.Cgroup != "" {
		return cgroupTree{info.Cgroup}
	}
	return f.adopt(info.PID, info.StartTime, mark)
}

// secondLine does the supervisor's work after its death: it kills every tree, and only then says that the runs are
// lost, because their locks may be given away as soon as that is known.
func (s *session) secondLine() {
	lost := s.all()
	trees := s.orphanedTrees(lost)
	var wg sync.WaitGroup
	for _, t := range trees {
		wg.Go(func() { s.killForSure(t) })
	}
	wg.Wait()
	s.reapOrphans()
	removeHome(s.hello.Cgroup)
	for _, p := range lost {
		p.lost()
		s.remove(p)
	}
}

// orphanedTrees is the one cgroup above all runs, which also holds those of which we have not heard yet, and the
// process groups. Orphans of these come to us.
func (s *session) orphanedTrees(lost []*Process) []tree {
	var trees []tree
	if s.hello.Cgroup != "" {
		trees = append(trees, cgroupTree{s.hello.Cgroup})
	}
	f := newFamily(os.Getpid())
	for _, p := range lost {
		info := p.info()
		switch mark := markOf(p.spec.Env); {
		case info != nil && info.Cgroup == "":
			trees = append(trees, f.adopt(info.PID, info.StartTime, mark))
		case info == nil && mark != "":
			trees = append(trees, f.adopt(-1, 0, mark)) // its PID never reached us
		}
	}
	return trees
}

func (s *session) killForSure(t tree) {
	for !killAll(t, time.Now().Add(complainEvery)) {
		s.log.Error("processes do not die after SIGKILL; their locks stay taken")
	}
}

// killAll kills until nothing is alive, or returns false at the given time.
func killAll(t tree, until time.Time) bool {
	for pause := firstLook; t.alive(); pause = min(2*pause, slowLook) {
		if time.Now().After(until) {
			return false
		}
		t.kill()
		time.Sleep(pause)
	}
	return true
}

// reapOrphans collects the dead of our dead supervisor that have become our children, because we are a sub-reaper or
// the first process of a container. A zombie tells little. Without cgroups it is one of them when it came after the
// supervisor and in another session than ours; whatever else we start stays in our session.
func (s *session) reapOrphans() {
	self, session := os.Getpid(), ownSession()
	for _, p := range processes() {
		if !p.zombie || p.ppid != self {
			continue
		}
		if home := s.hello.Cgroup; home != "" && inCgroup(p.pid, home) || home == "" && p.sid != session && p.start >= s.since {
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		}
	}
}

func ownSession() int {
	sid, err := unix.Getsid(0)
	if err != nil {
		return 0
	}
	return sid
}

// tail keeps the end of what the supervisor says on stderr, which is a Go panic if anything.
type tail struct {
	r *os.File

	mu   sync.Mutex
	text window
}

const tailSize = 4 << 10

func (t *tail) read() {
	t.text.tailMax = tailSize
	buf := make([]byte, tailSize)
	for {
		n, err := t.r.Read(buf)
		t.mu.Lock()
		t.text.write(buf[:n])
		t.mu.Unlock()
		if err != nil {
			_ = t.r.Close()
			return
		}
	}
}

// String is safe while read runs.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text.output().Tail)
}
