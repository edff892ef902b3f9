package jobs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

// Attempt is what an executor needs to start one run.
type Attempt struct {
	Job *Job
	Run Run
	// LockExpires is when the lock expires unless it is renewed, by the database's clock.
	LockExpires time.Time
	// StopAt and Deadline are on the boot clock: SIGTERM at StopAt, SIGKILL at Deadline, unless Process.Extend moves
	// them. A start that comes after StopAt is refused.
	StopAt, Deadline time.Duration
	// TraceParent is the trace that the work belongs to (W3C Trace Context); "" is none.
	TraceParent string
}

// Cause says what ended an attempt's process tree.
type Cause string

// The causes.
const (
	CauseExited         Cause = "exited"          // by itself: ExitCode or Signal says how
	CauseTimeout        Cause = "timeout"         // the job's timeout passed
	CauseStopped        Cause = "stopped"         // somebody called Stop
	CauseDeadline       Cause = "deadline"        // the lock was not renewed in time
	CauseSupervisorGone Cause = "supervisor_gone" // the supervisor process died
)

// Result is how an attempt ended; valid when its whole process tree is dead.
type Result struct {
	Cause    Cause
	ExitCode int    // of the main process; meaningless when Signal is set
	Signal   string // "SIGKILL"; empty when the process exited
	// Reason is why work that is no process failed by itself (Cause is exited, ExitCode is 1): http_status, sql, panic.
	// Empty for commands: their exit code says it.
	Reason Reason
	Output Output
}

// The reasons of work that is no process. ReasonStart is one of them, too: the other side could not be reached.
const (
	ReasonHTTPStatus Reason = "http_status" // the answer's status is not an expected one
	ReasonHTTPBody   Reason = "http_body"   // the answer's body broke off, or is not the expected one
	ReasonSQL        Reason = "sql"         // a statement was refused, or the transaction could not be committed
	ReasonError      Reason = "error"       // the function returned an error
	ReasonPanic      Reason = "panic"       // the function panicked
)

// StartError says that an attempt could not be started.
type StartError struct {
	// Lost is the reason when it was not the command's fault: the start came after the lock's deadline and was refused
	// (stale_start), or the supervisor died (supervisor). The attempt is lost then, and on_lost decides. Else empty.
	Lost Reason
	// ExitCode is what a shell would answer: 127 not found, 126 not executable. 0 when Lost is set.
	ExitCode int
	Message  string
}

func (e *StartError) Error() string { return "jobs: starting the command: " + e.Message }

// WorkError is an error of work that says what the ledger records as the reason.
type WorkError struct {
	Reason Reason
	Err    error
}

func (e *WorkError) Error() string { return e.Err.Error() }

func (e *WorkError) Unwrap() error { return e.Err }

// Task is an attempt whose work is a function of this process: http and sql jobs, and what a program that embeds the
// scheduler runs. As a process of the scheduler it promises less than a command under the supervisor. Stop, the job's
// timeout and the lock's StopAt end the function's context, and nothing can end the function: it must return soon after
// its context ended. Until it has, Done stays open and the run keeps its slot; its lock expires, and another replica may
// start the next attempt beside it.
type Task struct {
	boot   func() time.Duration
	cancel context.CancelCauseFunc
	done   chan struct{}

	mu               sync.Mutex
	stopAt, deadline time.Duration
	lease            *time.Timer // nil when the function has returned
	output           taskOutput
	result           Result // read after done
}

// The causes with which the context of a function ends; the end of the lock's own context is another one.
var (
	errTaskTimeout = errors.New("the job's timeout passed")
	errTaskStopped = errors.New("the run was asked to stop")
	errTaskLease   = errors.New("the lock was not renewed in time")
	errTaskExit    = errors.New("the function ended its goroutine instead of returning")
)

// ErrLockLost is what work returns that has found out by itself that the run has no longer its lock: the run is lost then,
// and on_lost decides.
var ErrLockLost = errors.New("the run has no longer its lock")

// StartTask runs work in a goroutine of its own, as the attempt a. ctx is the lock's context: its end is that of the
// work. boot is the clock of a.StopAt; nil is boottime.Now, as in scheduler.Options. What work writes to the task is the run's output, and so is its error at the end.
// An error is the outcome failed, with the reason error unless it is a *WorkError; a panic is caught, with the reason panic.
// The error of StartTask is a *StartError.
func StartTask(ctx context.Context, a *Attempt, boot func() time.Duration, work func(context.Context, *Task) error) (*Task, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, &StartError{Lost: ReasonStaleStart, Message: err.Error()}
	}
	if boot == nil {
		boot = boottime.Now
	}
	left := a.StopAt - boot()
	if left <= 0 {
		return nil, &StartError{Lost: ReasonStaleStart, Message: "the lock's time was over before the start"}
	}
	t := &Task{boot: boot, done: make(chan struct{}), stopAt: a.StopAt, deadline: a.Deadline}
	ctx, t.cancel = context.WithCancelCause(ctx)
	t.mu.Lock() // lapse may come at once
	t.lease = time.AfterFunc(left, t.lapse)
	t.mu.Unlock()
	timeout := func() bool { return true }
	if a.Job.Timeout > 0 {
		timeout = time.AfterFunc(a.Job.Timeout, func() { t.cancel(errTaskTimeout) }).Stop
	}
	go func() {
		defer t.cancel(nil)
		defer timeout()
		t.run(ctx, work)
	}()
	return t, nil
}

// lapse is called when StopAt may have come.
func (t *Task) lapse() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lease == nil {
		return
	}
	if left := t.stopAt - t.boot(); left > 0 {
		t.lease.Reset(left)
		return
	}
	t.cancel(errTaskLease)
}

// Extend moves both instants after a renewal. It does not take back an end that has begun.
func (t *Task) Extend(stopAt, deadline time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopAt, t.deadline = stopAt, deadline
	if t.lease != nil {
		t.lease.Reset(max(0, stopAt-t.boot()))
	}
}

// Left is how long the lock lives unless it is renewed: what work hands to somebody else (a statement to a server) must
// end by then.
func (t *Task) Left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deadline - t.boot()
}

// Stop ends the function's context. It does not wait.
func (t *Task) Stop() { t.cancel(errTaskStopped) }

// Done is closed when the function has returned, and not before.
func (t *Task) Done() <-chan struct{} { return t.done }

// Result is valid after Done.
func (t *Task) Result() Result {
	<-t.done
	return t.result
}

// Write adds to the run's output, of which the beginning and the end are kept. It never fails.
func (t *Task) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.output.write(p)
	return len(p), nil
}

// Output is what the work has written from a byte on, at most 64 KiB in one piece; see Chunk. It does not wait.
func (t *Task) Output(_ context.Context, since int64) (Chunk, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.output.since(since, MaxChunk), nil
}

// run calls work. Its end is recorded even when work calls runtime.Goexit, as the FailNow of a test does.
func (t *Task) run(ctx context.Context, work func(context.Context, *Task) error) {
	err := errTaskExit
	defer func() { t.finish(context.Cause(ctx), err) }()
	err = t.guarded(ctx, work)
}

func (t *Task) guarded(ctx context.Context, work func(context.Context, *Task) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			_, _ = t.Write(debug.Stack())
			err = &WorkError{Reason: ReasonPanic, Err: fmt.Errorf("panic: %v", p)}
		}
	}()
	return work(ctx, t)
}

// finish says how the function ended. With an error after its context ended, it is that end; without one, the work was
// done in time.
func (t *Task) finish(ended, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lease.Stop()
	t.lease = nil
	t.result = Result{Cause: CauseExited}
	if err != nil {
		t.output.line(err.Error())
		t.result.ExitCode = 1
		switch t.result.Cause = causeOf(ended); {
		case errors.Is(err, ErrLockLost):
			t.result.Cause = CauseDeadline
		case t.result.Cause == CauseExited:
			t.result.Reason = reasonOf(err)
		}
	}
	t.result.Output = t.output.kept()
	close(t.done)
}

func causeOf(ended error) Cause {
	switch {
	case ended == nil:
		return CauseExited
	case errors.Is(ended, errTaskTimeout):
		return CauseTimeout
	case errors.Is(ended, errTaskStopped):
		return CauseStopped
	default:
		return CauseDeadline
	}
}

func reasonOf(err error) Reason {
	var f *WorkError
	if errors.As(err, &f) {
		return f.Reason
	}
	return ReasonError
}

// What is kept of a task's output: as much as of a command's.
const (
	taskHead = 64 << 10
	taskTail = 192 << 10
)

// taskOutput is the beginning and the end of what was written.
type taskOutput struct {
	head, tail []byte // tail is cut back when it has twice its size
	total      int64
}

func (o *taskOutput) write(p []byte) {
	o.total += int64(len(p))
	n := min(len(p), taskHead-len(o.head))
	o.head = append(o.head, p[:n]...)
	p = p[n:]
	o.tail = append(o.tail, p[max(0, len(p)-taskTail):]...)
	if len(o.tail) >= 2*taskTail {
		o.tail = append([]byte(nil), o.tail[len(o.tail)-taskTail:]...)
	}
}

// line writes a line of its own.
func (o *taskOutput) line(text string) {
	last := o.head
	if len(o.tail) > 0 {
		last = o.tail
	}
	if len(last) > 0 && last[len(last)-1] != '\n' {
		o.write([]byte{'\n'})
	}
	o.write([]byte(text + "\n"))
}

// since is as window.since of package supervisor has it.
func (o *taskOutput) since(offset int64, limit int) Chunk {
	c := Chunk{At: min(max(offset, 0), o.total), Total: o.total}
	kept, from := o.head, int64(0)
	if c.At >= int64(len(o.head)) {
		kept = o.tail[max(0, len(o.tail)-taskTail):]
		from = o.total - int64(len(kept))
	}
	if c.At < from { // it was dropped: the newest bytes follow
		c.At = o.total - int64(min(limit, len(kept)))
	}
	kept = kept[c.At-from:]
	c.Data = append([]byte(nil), kept[:min(limit, len(kept))]...)
	return c
}

func (o *taskOutput) kept() Output {
	return Output{Head: o.head, Tail: o.tail[max(0, len(o.tail)-taskTail):], Total: o.total}
}
