package supervisor

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"
)

// Process is a run as the daemon sees it.
type Process struct {
	session *session
	number  uint64
	spec    Spec

	settled chan struct{} // closed when it was executed or refused
	done    chan struct{}
	halted  chan syscall.Signal
	chunks  chan Chunk    // answers to Output; holds one
	asking  chan struct{} // holds the right to ask for output

	mu               sync.Mutex
	stopAt, deadline time.Duration
	started          *started
	isSettled        bool
	isDone           bool
	refused          *StartError // read after settled
	result           Result      // read after done
}

func newProcess(s *session, number uint64, spec Spec) *Process {
	return &Process{
		session: s, number: number, spec: spec, stopAt: spec.StopAt, deadline: spec.Deadline,
		settled: make(chan struct{}), done: make(chan struct{}), halted: make(chan syscall.Signal, 1),
		chunks: make(chan Chunk, 1), asking: make(chan struct{}, 1),
	}
}

// Extend moves both instants after a renewal. It does not block, and does not take back a stop that has begun. A
// renewal between Start and its return is to be repeated after it.
func (p *Process) Extend(stopAt, deadline time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock() // also around the order, so that two calls cannot arrive in the wrong order
	p.stopAt, p.deadline = stopAt, deadline
	if !p.isDone {
		p.session.orders.push(order{Op: orderExtend, Run: p.number, StopAt: stopAt, Deadline: deadline})
	}
}

// Stop asks for the end: SIGTERM to the tree, SIGKILL after KillAfter or at the deadline. It does not wait.
func (p *Process) Stop() { p.session.orders.push(order{Op: orderStop, Run: p.number}) }

// Kill asks for the end at once: SIGKILL to the tree. It does not wait.
func (p *Process) Kill() { p.session.orders.push(order{Op: orderKill, Run: p.number}) }

// Signal passes a signal on to the process group of the command, as long as the command itself runs.
func (p *Process) Signal(sig syscall.Signal) {
	p.session.orders.push(order{Op: orderSignal, Run: p.number, Signal: int(sig)})
}

// Halted gets the signal by which the command itself was stopped, SIGTSTP for one: it can go on. Only the newest one is
// kept for a slow reader. Without Options.Inherit nothing comes.
func (p *Process) Halted() <-chan syscall.Signal { return p.halted }

// Done is closed when the whole tree is dead, and not before.
func (p *Process) Done() <-chan struct{} { return p.done }

// Result is valid after Done.
func (p *Process) Result() Result {
	<-p.done
	return p.result
}

// errNoAnswer says that the supervisor has not answered in time.
var errNoAnswer = errors.New("supervisor: there is no answer")

// Output is what the command has printed from a byte on, at most 64 KiB in one piece. What came faster than it was asked for
// may be left out: then the piece begins later, or its end is not the end of what was printed. It waits for the supervisor,
// or for the end of ctx or of the run; after that end, Result has the output. A question that was given up is answered all
// the same, so that there is never more than one on its way: until then there is no further one.
func (p *Process) Output(ctx context.Context, since int64) (Chunk, error) {
	select {
	case p.asking <- struct{}{}:
		p.session.orders.push(order{Op: orderOutput, Run: p.number, Since: since})
	default: // the answer to an earlier question comes first; what it says is true, too
	}
	select {
	case c := <-p.chunks:
		<-p.asking
		if c.At < since { // it was asked for less
			c.Data = c.Data[min(since-c.At, int64(len(c.Data))):]
			c.At = since
		}
		return c, nil
	case <-p.done:
		return Chunk{At: since, Total: since}, nil
	case <-ctx.Done():
		return Chunk{}, errNoAnswer
	}
}

// hand passes an answer on. There is room: one question is asked at a time.
func (p *Process) hand(c Chunk) {
	select {
	case p.chunks <- c:
	default:
	}
}

// PID is that of the command itself, 0 when the supervisor died before it told.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started == nil {
		return 0
	}
	return p.started.PID
}

func (p *Process) settle(info *started, refused *StartError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isSettled {
		return
	}
	p.isSettled = true
	p.started, p.refused = info, refused
	close(p.settled)
}

func (p *Process) finish(r Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isDone {
		return
	}
	p.isDone = true
	p.result = r
	close(p.done)
}

// halt is only called by the session's reader.
func (p *Process) halt(sig syscall.Signal) {
	select {
	case <-p.halted:
	default:
	}
	p.halted <- sig
}

// lost ends a process whose supervisor has died. Its tree is dead. One that was being started may have been executed, and
// nobody is left who knows.
func (p *Process) lost() {
	p.settle(nil, nil)
	p.finish(Result{Cause: CauseSupervisorGone, ExitCode: -1})
}

// overdue is for how long the tree should have been dead.
func (p *Process) overdue(now time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now - p.deadline
}

func (p *Process) info() *started {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.started
}
