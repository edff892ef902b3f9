package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

const (
	pollEvery = 200 * time.Millisecond
	// A pending run is normally taken within a second; after this time the user is told why it may hang.
	noticeAfter = 3 * time.Second
)

// runReader is what the waiter reads of the ledger.
type runReader interface {
	Get(ctx context.Context, id int64) (jobs.Run, error)
	List(ctx context.Context, f jobs.RunFilter) ([]jobs.Run, error)
}

// lockReader says who holds a resource.
type lockReader interface {
	Get(ctx context.Context, resource string) (locking.Record, error)
}

// waiter follows a run to its end, through all its attempts, by asking the ledger.
type waiter struct {
	runs  runReader
	locks lockReader
	say   func(format string, args ...any)
	// patience is how long the database may be away; see process.
	patience time.Duration

	noticed bool // the user was told why nothing happens
	running bool // the user was told where it runs
}

// wait returns the last attempt once it is finished, or held for a person. It gives up after patience without an
// answer of the database; the run goes on then, as it does after Ctrl-C.
func (w *waiter) wait(ctx context.Context, run jobs.Run) (jobs.Run, error) {
	began, answered := time.Now(), time.Now()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		next, ended, err := w.look(ctx, run)
		switch {
		case ctx.Err() != nil:
			return run, interrupted(&run)
		case err == nil && ended:
			return next, nil
		case err == nil:
			run, answered = next, time.Now()
			w.progress(ctx, &run, time.Since(began))
		case !passing(err):
			return run, err
		case time.Since(answered) >= w.patience:
			return run, fail(exitUnavailable, "the database went away: %w", err).
				withHint("run %d goes on without this command; %s", run.ID, howToSee(&run))
		}
		select {
		case <-ctx.Done():
			return run, interrupted(&run)
		case <-tick.C:
		}
	}
}

// look asks once. ended says that no attempt follows.
func (w *waiter) look(ctx context.Context, run jobs.Run) (next jobs.Run, ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	run, err = w.runs.Get(ctx, run.ID)
	if err != nil || run.State != jobs.StateFinished {
		return run, err == nil && run.State == jobs.StateHeld, err
	}
	// The next attempt is inserted in the transaction that ends this one, so it is there now or never.
	later, err := w.runs.List(ctx, jobs.RunFilter{Job: run.Job, Since: run.ScheduledAt, Limit: maxList})
	if err != nil {
		return run, false, err
	}
	for i := range later {
		if later[i].Occurrence == run.Occurrence && later[i].Attempt == run.Attempt+1 {
			w.say("%s; attempt %d follows as run %d", ending(&run), later[i].Attempt, later[i].ID)
			w.noticed, w.running = false, false
			return later[i], later[i].State == jobs.StateHeld, nil
		}
	}
	return run, true, nil
}

// progress tells once where the run is, or why it is nowhere yet.
func (w *waiter) progress(ctx context.Context, run *jobs.Run, waited time.Duration) {
	switch {
	case run.State == jobs.StateRunning && !w.running:
		w.running = true
		w.say("run %d of %s is running on replica %s", run.ID, run.Job, run.Replica)
	case run.State == jobs.StatePending && !w.noticed && waited >= noticeAfter:
		w.noticed = true
		w.say("%s", w.whyPending(ctx, run))
	}
}

func (w *waiter) whyPending(ctx context.Context, run *jobs.Run) string {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	if lock, err := w.locks.Get(ctx, run.Resource); err == nil {
		return "run " + runID(run) + " waits for the lock " + run.Resource + ", which is held since " + stamp(lock.AcquiredAt) +
			" by " + lock.Owner + "; `cronlatch locks list` shows it"
	}
	return "no replica has taken run " + runID(run) + " yet; is `cronlatch serve` running with this database and this job?"
}

// passing tells an outage, which may be over in a moment, from an error that stays.
func passing(err error) bool {
	return database.Unavailable(err) || database.Unknown(err) || database.Retryable(err) || errors.Is(err, context.DeadlineExceeded)
}

func interrupted(run *jobs.Run) error {
	return fail(exitInterrupted, "not waiting any longer; run %d goes on", run.ID).withHint("%s", howToSee(run))
}

func howToSee(run *jobs.Run) string {
	return "`cronlatch runs list --job " + run.Job + "` shows how it ends"
}

// exitCodeOf is the code of a command that waited for the run: the job's own where there is one.
func exitCodeOf(run *jobs.Run) int {
	switch run.Outcome {
	case jobs.OutcomeSucceeded:
		return ownCode(run, exitOK)
	case jobs.OutcomeFailed:
		if run.Signal != "" {
			return signalCode(run.Signal)
		}
		if run.Reason == jobs.ReasonStart {
			return nonZero(ownCode(run, exitNotExecutable))
		}
		return nonZero(ownCode(run, exitFailure))
	case jobs.OutcomeTimedOut:
		return exitTimedOut
	case jobs.OutcomeLost:
		return exitLost
	case jobs.OutcomeSkipped, jobs.OutcomeMissed:
		if run.Reason == jobs.ReasonOverlap || run.Reason == jobs.ReasonLockHeld {
			return exitBusy
		}
		return nonZero(ownCode(run, exitFailure))
	case jobs.OutcomeCancelled:
		return exitFailure
	default: // held: the attempt before was lost
		return exitLost
	}
}

func ownCode(run *jobs.Run, otherwise int) int {
	if run.ExitCode != nil {
		return *run.ExitCode
	}
	return otherwise
}

// nonZero keeps a run that did not succeed from looking like one that did.
func nonZero(code int) int {
	if code == exitOK {
		return exitFailure
	}
	return code
}

// signalCode is 128+n, as shells have it.
func signalCode(name string) int {
	if n := unix.SignalNum("SIG" + strings.TrimPrefix(name, "SIG")); n > 0 {
		return exitSignal + int(n)
	}
	return exitFailure
}
