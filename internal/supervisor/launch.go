package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

// launched is a child between fork and exec.
type launched struct {
	pid     int
	tree    tree
	info    started
	trouble error // worth a line in the log although the run goes on
	output  *os.File
	order   *os.File
	verdict *os.File
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
	l, err := s.fork(place.cgroup)
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

// tell sends the order. It blocks for as long as the child does not read.
func (l *launched) tell(spec *wireSpec) {
	_ = json.NewEncoder(l.order).Encode(childOrder{ // a child that ended says so by its verdict
		Parent: os.Getpid(), Argv: spec.Argv, Env: spec.Env, Dir: spec.Dir,
		StopAt: min(spec.StopAt, spec.Deadline),
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
