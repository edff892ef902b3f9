package supervisor

import (
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

// Command is the hidden command of the binary that is the supervisor.
const Command = "supervise"

// socketFD is where the supervisor finds its end of the socket pair.
const socketFD = 3

const (
	never = time.Duration(math.MaxInt64)
	// tick bounds how late the boot clock is looked at: Go's timers stand still while the machine is suspended.
	tick = 250 * time.Millisecond
	// learnEvery is how often descent is noted where there are no cgroups: reading the process table costs milliseconds.
	learnEvery = time.Second
	// leisure is the tick while nothing runs.
	leisure = 10 * time.Second
)

// supervisor is the state of the supervisor process. Its main loop owns everything but the queues; whoever else has
// news sends a function to events.
type supervisor struct {
	ground *ground
	null   *os.File
	out    *queue[report]
	forks  *queue[*run]
	events chan func()

	runs    map[uint64]*run
	byPID   map[int]*run
	forking int                        // runs handed to forkLoop and not back yet
	early   map[int]syscall.WaitStatus // children that ended before forkLoop told who they are
	litter  []tree                     // dead trees that could not be removed yet
	leaving bool
	heir    bool // it has legacies, or gave them away: it runs one command in the place of its caller

	legacies []legacy // only forkLoop touches them
	learnAt  time.Duration
}

// Main is `cronlatch supervise`. It returns when the daemon is gone, or wants it to go, and all runs are dead.
func Main(args []string) int {
	runtime.LockOSThread() // forkLoop's thread must not end before the process does
	nameProcess("cronlatch-super")
	ignoreSignals()
	legacies, err := receiveLegacies(args)
	closeInherited()
	var s *supervisor
	var sock *os.File
	if err == nil {
		s, sock, err = newSupervisor()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cronlatch supervise: "+err.Error())
		return 1
	}
	s.legacies, s.heir = legacies, len(legacies) > 0
	go func() { _ = send(sock, s.out) }() // a daemon that is gone is noticed by the reader
	go s.listen(sock)
	go s.loop()
	s.forkLoop()
	return 0
}

func newSupervisor() (*supervisor, *os.File, error) {
	syscall.CloseOnExec(socketFD)
	if err := syscall.SetNonblock(socketFD, true); err != nil {
		return nil, nil, fmt.Errorf("this command is started by the daemon, not by hand: %w", err)
	}
	if err := becomeReaper(); err != nil {
		return nil, nil, err
	}
	if err := os.Chdir("/"); err != nil { // keep no file system busy
		return nil, nil, fmt.Errorf("leaving the working directory: %w", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the children's stdin: %w", err)
	}
	return &supervisor{
		null: null, out: newQueue[report](), forks: newQueue[*run](), events: make(chan func()),
		runs: map[uint64]*run{}, byPID: map[int]*run{}, early: map[int]syscall.WaitStatus{},
	}, os.NewFile(socketFD, "daemon"), nil
}

// ignoreSignals takes the signals that may reach us together with the daemon and drops them. They are not set to be
// ignored, which the jobs would inherit.
func ignoreSignals() {
	dropped := make(chan os.Signal, 1)
	signal.Notify(dropped, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2)
	handleIgnored(dropped)
}

// closeInherited closes what the daemon had inherited itself, which can be anything. What the daemon or our runtime
// opened is told apart by its close-on-exec mark: with it, a descriptor is not inherited.
func closeInherited() {
	for _, fd := range openDescriptors() {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if fd > socketFD && err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = syscall.Close(fd)
		}
	}
}

func (s *supervisor) listen(sock *os.File) {
	_ = receive(sock, func(o order) { s.events <- func() { s.obey(o) } })
	s.events <- func() { s.leave() }
}

func (s *supervisor) loop() {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	timer := time.NewTimer(0)
	for !s.leaving || len(s.runs) > 0 {
		timer.Reset(s.wait(boottime.Now()))
		select {
		case event := <-s.events:
			event()
		case <-children:
		case <-timer.C:
		}
		s.reap()
		now := boottime.Now()
		for _, r := range s.runs {
			r.step(now)
			s.finish(r)
		}
		s.learn(now)
	}
	s.cleanUp()
	s.forks.close()
}

// aside works on a tree without keeping the loop from the others.
func (s *supervisor) aside(action, then func()) {
	go func() {
		action()
		s.events <- then
	}()
}

// learn notes the descent of processes that no cgroup holds.
func (s *supervisor) learn(now time.Duration) {
	if len(s.runs) > 0 && now >= s.learnAt && s.ground.grouped.Load() {
		s.learnAt = never
		s.aside(s.ground.family.learn, func() { s.learnAt = boottime.Now() + learnEvery })
	}
}

// wait is how long nothing is due.
func (s *supervisor) wait(now time.Duration) time.Duration {
	if len(s.runs) == 0 {
		return leisure
	}
	at := now + tick
	for _, r := range s.runs {
		at = min(at, r.next())
	}
	return max(at-now, 0)
}

// reap collects every child that ended, the adopted ones included.
func (s *supervisor) reap() {
	options := syscall.WNOHANG
	if s.heir {
		options |= syscall.WUNTRACED
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, options, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if r, ok := s.byPID[pid]; status.Stopped() {
			if ok && !r.ending {
				s.out.push(report{Op: reportStopped, Run: r.number, Signal: int(status.StopSignal())})
			}
		} else if ok {
			delete(s.byPID, pid)
			r.reaped(status)
			s.settle(r)
		} else if s.forking > 0 {
			s.early[pid] = status
		}
	}
}

// cleanUp is quick: all runs are dead.
func (s *supervisor) cleanUp() {
	if s.ground == nil {
		return
	}
	for until := boottime.Now() + drainDelay; len(s.litter) > 0 && boottime.Now() < until; {
		s.tidy()
		time.Sleep(firstLook)
	}
	removeHome(s.ground.home)
}

// tidy tries again to remove what was busy: the kernel lets go of a dead process a little after its parent knows.
func (s *supervisor) tidy() {
	left := s.litter[:0]
	for _, t := range s.litter {
		if t.remove() != nil {
			left = append(left, t)
		}
	}
	s.litter = left
}
