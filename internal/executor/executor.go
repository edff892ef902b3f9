package executor

import (
	"context"
	"time"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// Options are what the executors need. All fields are required unless said otherwise.
type Options struct {
	Boot    func() time.Duration // the boot clock
	Own     database.Target      // the database of the locks
	Replica string               // in the names of connections
	TTL     time.Duration        // of locks
	Getenv  func(string) string  // asked for HOME and USER, for ~/.pgpass and certificates; nil is an empty environment
	Dir     string               // where relative paths of SQLite files start
}

// Executor starts attempts that are no commands. It has no state: what a run opens, it closes.
type Executor struct{ o Options }

// New returns an executor.
func New(o Options) *Executor { return &Executor{o} }

// Runs reports whether the job is one for an executor, and not a command.
func Runs(j *jobs.Job) bool { return j.HTTP != nil || j.SQL != nil }

// Start is a scheduler.StartFunc for jobs that Runs reports.
func (e *Executor) Start(ctx context.Context, a jobs.Attempt) (scheduler.Process, error) {
	switch {
	case a.Job.HTTP != nil:
		return e.startHTTP(ctx, a)
	case a.Job.SQL != nil:
		return e.startSQL(ctx, a)
	default:
		return nil, &jobs.StartError{ExitCode: 126, Message: "the job has neither http nor sql"}
	}
}

// start keeps a nil *jobs.Task from becoming a Process that is not nil.
func (e *Executor) start(ctx context.Context, a *jobs.Attempt, work func(context.Context, *jobs.Task) error) (scheduler.Process, error) {
	t, err := jobs.StartTask(ctx, a, e.o.Boot, work)
	if err != nil {
		return nil, err
	}
	return t, nil
}
