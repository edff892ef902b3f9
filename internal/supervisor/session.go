package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// readyWithin is how long a new supervisor may take to say hello.
const readyWithin = 10 * time.Second

// session is one supervisor process, from its start until everything that it had started is dead.
type session struct {
	log     *zap.Logger
	process *os.Process
	socket  *os.File
	orders  *queue[order]
	stderr  *tail
	since   uint64 // start time of the process
	hello   hello

	mu         sync.Mutex
	gone       bool // no new runs: the supervisor is dead or about to be killed
	last       uint64
	processes  map[uint64]*Process
	unanswered int // pings

	ready   chan struct{} // the supervisor said hello
	busy    chan struct{} // a run was added
	ended   chan struct{} // closed when the connection has ended
	emptied *sync.Cond    // the last run was removed
}

// open starts a supervisor. wg counts its goroutines.
func open(o Options, wg *sync.WaitGroup) (*session, error) {
	s := &session{
		log: o.Logger, orders: newQueue[order](), stderr: &tail{}, processes: map[uint64]*Process{},
		ready: make(chan struct{}, 1), busy: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	s.emptied = sync.NewCond(&s.mu)
	if err := s.spawn(o); err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	s.orders.push(order{Op: orderSetup, Setup: &setup{Name: o.Name, Cgroups: o.Cgroups}})
	wg.Go(s.run)
	wg.Go(s.watch)
	select {
	case <-s.ready:
	case <-s.ended:
		return nil, fmt.Errorf("starting the supervisor: it ended at once: %s", s.stderr)
	case <-time.After(readyWithin):
		_ = s.process.Kill()
		return nil, errors.New("starting the supervisor: it does not answer")
	}
	s.log.Info("supervisor started", zap.Int("pid", s.process.Pid), zap.String("cgroup", s.hello.Cgroup))
	if s.hello.Cgroup != "" {
		return s, nil
	}
	return s, becomeReaper() // so that orphans come to us if the supervisor dies
}

// spawn starts the process in a session of its own (or only in a process group of its own: see Options.Inherit), with an empty environment: it must hold no secret that a job could
// read from /proc.
func (s *session) spawn(o Options) error {
	var ours, theirs []*os.File // ours: stderr, socket; theirs: stdin, stdout, stderr, socket
	err := openEnds(&ours, &theirs)
	argv, attr := append([]string{filepath.Base(os.Args[0])}, o.Args...), &syscall.SysProcAttr{Setsid: true}
	if err == nil && o.Inherit {
		var targets string
		targets, err = bequeath(&theirs)
		argv, attr = append(argv, targets), &syscall.SysProcAttr{Setpgid: true}
	}
	if err == nil {
		s.process, err = os.StartProcess(o.Executable, argv, &os.ProcAttr{Env: []string{}, Files: theirs, Sys: attr})
	}
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return fmt.Errorf("executing it: %w", err)
	}
	s.stderr.r, s.socket = ours[0], ours[1]
	s.since, _ = startTime(s.process.Pid)
	return nil
}

// openEnds opens both ends of everything that connects us; on an error, what was opened before it.
func openEnds(ours, theirs *[]*os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("opening its stdin: %w", err)
	}
	*theirs = append(*theirs, null, null)
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("opening its stderr: %w", err)
	}
	*ours, *theirs = append(*ours, read), append(*theirs, write)
	socket, daemon, err := socketPair()
	if err != nil {
		return err
	}
	*ours, *theirs = append(*ours, socket), append(*theirs, daemon)
	return nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // closing one twice does no harm
	}
}

func socketPair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	if err := syscall.SetNonblock(fds[0], true); err != nil {
		_ = syscall.Close(fds[0])
		_ = syscall.Close(fds[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fds[0]), "supervisor"), os.NewFile(uintptr(fds[1]), "daemon"), nil
}

// run serves the connection until it ends, makes sure that the supervisor is dead, and finishes what it left.
func (s *session) run() {
	var wg sync.WaitGroup
	wg.Go(func() { _ = send(s.socket, s.orders) }) // what a dead supervisor did not get does not matter
	wg.Go(s.stderr.read)
	_ = receive(s.socket, s.hear)
	_ = s.process.Kill() // it may only have closed its socket; a supervisor that is not heard must not go on
	state, err := s.process.Wait()
	s.mu.Lock()
	leaving := s.gone && len(s.processes) == 0
	s.gone = true
	s.mu.Unlock()
	s.orders.close()
	_ = s.socket.Close()
	close(s.ended)
	wg.Wait()
	if !leaving {
		s.log.Error("supervisor died", zap.Int("pid", s.process.Pid), zap.Stringer("state", state), zap.Error(err), zap.Stringer("stderr", s.stderr))
	}
	s.secondLine()
}

// hear takes in a report.
func (s *session) hear(r report) {
	s.mu.Lock()
	p := s.processes[r.Run]
	s.mu.Unlock()
	switch {
	case r.Op == reportHello && r.Hello != nil:
		s.hello = *r.Hello // read by open after ready, and by this goroutine
		select {
		case s.ready <- struct{}{}:
		default:
		}
	case r.Op == reportPong:
		s.mu.Lock()
		s.unanswered = 0
		s.mu.Unlock()
	case r.Op == reportTrouble:
		s.log.Warn("supervisor has trouble", zap.String("trouble", r.Trouble))
	case p == nil:
	case r.Op == reportStarted:
		s.noteGroup(r.Started)
		p.settle(r.Started, nil)
	case r.Op == reportStopped:
		p.halt(syscall.Signal(r.Signal))
	case r.Op == reportOutput && r.Chunk != nil:
		p.hand(*r.Chunk)
	case r.Op == reportRefused:
		p.settle(nil, r.Refused)
		s.remove(p)
	case r.Op == reportDone && r.Result != nil:
		p.finish(*r.Result)
		s.remove(p)
	}
}

// noteGroup prepares for the death of the supervisor of a run that has no cgroup although others have.
func (s *session) noteGroup(info *started) {
	if info != nil && info.Cgroup == "" && s.hello.Cgroup != "" {
		_ = becomeReaper() // it worked for the supervisor
	}
}

func (s *session) start(spec Spec) (*Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil, &StartError{ReasonSupervisor, "the supervisor has just died"}
	}
	s.last++
	p := newProcess(s, s.last, spec)
	s.processes[p.number] = p
	s.orders.push(order{Op: orderStart, Run: p.number, Spec: spec.wire()})
	select {
	case s.busy <- struct{}{}:
	default:
	}
	return p, nil
}

func (s *session) remove(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.processes, p.number)
	if len(s.processes) == 0 {
		s.emptied.Broadcast()
	}
}

func (s *session) isGone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// all is every run that has not ended.
func (s *session) all() []*Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*Process, 0, len(s.processes))
	for _, p := range s.processes {
		list = append(list, p)
	}
	return list
}

// leave stops all runs and lets the supervisor end when they are dead.
func (s *session) leave() {
	for _, p := range s.all() {
		p.Stop()
	}
	s.mu.Lock()
	s.gone = true
	for len(s.processes) > 0 {
		s.emptied.Wait()
	}
	s.mu.Unlock()
	s.orders.push(order{Op: orderLeave})
}
