package daemon

import (
	"context"
	"errors"
	"os"
	"strconv"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/executor"
	"github.com/cronlatch/cronlatch/internal/supervisor"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// What is kept of a run's output: the beginning, which says what was tried, and the end, which says how it went.
const (
	headBytes = 64 << 10
	tailBytes = 192 << 10
)

// starter starts the commands of attempts under the supervisor, and requests and transactions in this process.
func (d *Daemon) starter(sup *supervisor.Client) scheduler.StartFunc {
	work := executor.New(executor.Options{
		Boot: boottime.Now, Own: d.o.Target, Replica: d.o.Replica, TTL: d.o.Config.Lock.TTL, Getenv: d.o.Getenv, Dir: d.o.Dir,
	})
	return func(ctx context.Context, a jobs.Attempt) (scheduler.Process, error) {
		a.TraceParent = d.tracer.Parent(a.Run.ID) //nolint:contextcheck // the span is found by the run
		if executor.Runs(a.Job) {
			return work.Start(ctx, a)
		}
		argv, err := a.Argv()
		if err != nil {
			return nil, &jobs.StartError{ExitCode: 126, Message: err.Error()}
		}
		who, err := identityOf(a.Job, os.Geteuid())
		if err != nil {
			return nil, &jobs.StartError{ExitCode: 126, Message: err.Error()}
		}
		p, err := sup.Start(ctx, supervisor.Spec{
			ID: strconv.FormatInt(a.Run.ID, 10), Argv: argv, Env: a.Environ(who.getenv(d.o.Getenv)), Dir: d.o.Dir, User: who.account,
			StopAt: a.StopAt, Deadline: a.Deadline, Timeout: a.Job.Timeout, KillAfter: a.Job.KillAfter,
			HeadBytes: headBytes, TailBytes: tailBytes, Mask: hidden(a.Job),
		})
		if err != nil {
			return nil, startError(err)
		}
		return &process{p}, nil
	}
}

// startError tells the command's faults from ours. The context of a start ends only because the lock was lost: that is a
// stale start too.
func startError(err error) error {
	var s *supervisor.StartError
	if !errors.As(err, &s) {
		return &jobs.StartError{ExitCode: 126, Message: err.Error()}
	}
	e := &jobs.StartError{Message: s.Error()}
	switch s.Reason {
	case supervisor.ReasonStale, supervisor.ReasonCancelled:
		e.Lost = jobs.ReasonStaleStart
	case supervisor.ReasonSupervisor:
		e.Lost = jobs.ReasonSupervisor
	case supervisor.ReasonNotFound:
		e.ExitCode = 127
	default:
		e.ExitCode = 126
	}
	return e
}
