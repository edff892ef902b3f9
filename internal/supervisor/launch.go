package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

// launched is a child between fork and exec.
type launched struct {
	pid     int
	tree    tree
	info    started
	trouble error    // worth a line in the log although the run goes on
	output  *os.File // nil when the command writes where its caller does
	order   *os.File
	verdict *os.File
	keep    []int // descriptors that the command is to have
	heir    bool
}

// forkLoop forks all children, on one thread that lives as long as the process: the kernel sends the parent-death
// signal when the forking *thread* ends. It runs beside the main loop because a fork takes a millisecond or, on a
// loaded machine, many.
func (s *supervisor) forkLoop() {
	for {
		batch, ok := s.forks.take()
		if !ok {
			return
		}
		for _, r := range batch {
			l, refused := s.launch(r.number, r.spec)
			s.events <- func() { s.forked(r, l, refused) }
		}
	}
}

// launch forks exec-child.
func (s *supervisor) launch(number uint64, spec *wireSpec) (*launched, *StartError) {
	if late := boottime.Now() - min(spec.StopAt, spec.Deadline); late >= 0 {
		return nil, stale(late)
	}
	place, trouble := s.ground.plot(number, spec.ID)
	fork := s.fork
	if s.heir {
		fork = s.forkHeir
	}
	l, err := fork(place.cgroup)
	place.clear(err != nil)
	if err != nil {
		return nil, &StartError{ReasonSystem, errors.Join(err, trouble).Error()}
	}
	l.trouble = trouble
	l.tree, l.info = s.ground.settle(place, l.pid, toStrings(spec.Env))
	return l, nil
}

func (s *supervisor) fork(cgroup *os.File) (*launched, error) {
	self, err := ownExecutable()
	if err != nil {
		return nil, fmt.Errorf("finding our own program: %w", err)
	}
	var p pipes
	defer p.closeChildEnds()
	l := &launched{}
	if l.output, err = p.fromChild("output"); err == nil {
		if l.verdict, err = p.fromChild("verdict"); err == nil {
			l.order, err = p.toChild("order")
		}
	}
	if err != nil {
		p.closeOurEnds()
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	output, verdict, order := p.child[0], p.child[1], p.child[2]
	l.pid, err = syscall.ForkExec(self, []string{filepath.Base(os.Args[0]), ChildCommand}, &syscall.ProcAttr{
		Files: []uintptr{s.null.Fd(), uintptr(output), uintptr(output), uintptr(order), uintptr(verdict)},
		Sys:   childAttr(cgroup),
	})
	if err != nil {
		p.closeOurEnds()
		return nil, fmt.Errorf("forking: %w", err)
	}
	return l, nil
}

// forkHeir forks the one child that gets what we inherited, and keeps nothing of it: a pipe has to end with the command.
func (s *supervisor) forkHeir(cgroup *os.File) (*launched, error) {
	if s.legacies == nil {
		return nil, errNoLegacy
	}
	defer func() {
		closeLegacies(s.legacies)
		s.legacies = nil
	}()
	self, err := ownExecutable()
	if err != nil {
		return nil, fmt.Errorf("finding our own program: %w", err)
	}
	var p pipes
	defer p.closeChildEnds()
	l := &launched{heir: true}
	if l.verdict, err = p.fromChild("verdict"); err == nil {
		l.order, err = p.toChild("order")
	}
	if err != nil {
		p.closeOurEnds()
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	files, numbers := endow(s.legacies, p.child[1], p.child[0])
	for _, one := range s.legacies {
		l.keep = append(l.keep, one.target)
	}
	argv := []string{filepath.Base(os.Args[0]), ChildCommand, strconv.Itoa(numbers[0]), strconv.Itoa(numbers[1])}
	l.pid, err = syscall.ForkExec(self, argv, &syscall.ProcAttr{Files: files, Sys: inSession(childAttr(cgroup))})
	if err != nil {
		p.closeOurEnds()
		return nil, fmt.Errorf("forking: %w", err)
	}
	return l, nil
}

// inSession leaves a child in our session, in a process group of its own.
func inSession(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	attr.Setsid, attr.Setpgid = false, true
	return attr
}

// tell sends the order. It blocks for as long as the child does not read.
func (l *launched) tell(spec *wireSpec) {
	_ = json.NewEncoder(l.order).Encode(childOrder{ // a child that ended says so by its verdict
		Parent: os.Getpid(), Argv: spec.Argv, Env: spec.Env, Dir: spec.Dir, User: spec.User,
		StopAt: min(spec.StopAt, spec.Deadline),
		Heir:   l.heir, Keep: l.keep, Foreground: spec.Foreground, Ignore: spec.Ignore,
	})
	_ = l.order.Close()
}

// pipes are the pipes to one child. Our ends do not block; those of the child do, as every program expects.
type pipes struct {
	child []int
	ours  []*os.File
}

func (p *pipes) fromChild(name string) (*os.File, error) { return p.make(name, 0) }
func (p *pipes) toChild(name string) (*os.File, error)   { return p.make(name, 1) }

func (p *pipes) make(name string, ourEnd int) (*os.File, error) {
	var fds [2]int
	syscall.ForkLock.RLock()
	err := syscall.Pipe(fds[:])
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("pipe", err)
	}
	p.child = append(p.child, fds[1-ourEnd])
	if err := syscall.SetNonblock(fds[ourEnd], true); err != nil {
		_ = syscall.Close(fds[ourEnd])
		return nil, os.NewSyscallError("fcntl", err)
	}
	f := os.NewFile(uintptr(fds[ourEnd]), name)
	p.ours = append(p.ours, f)
	return f, nil
}

func (p *pipes) closeChildEnds() {
	for _, fd := range p.child {
		_ = syscall.Close(fd)
	}
}

func (p *pipes) closeOurEnds() {
	for _, f := range p.ours {
		_ = f.Close()
	}
}
