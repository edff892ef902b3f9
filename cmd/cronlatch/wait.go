package main

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
)

const (
	pollEvery = 200 * time.Millisecond
	// A pending run is normally taken within a second; after this time the user is told why it may hang.
	noticeAfter = 3 * time.Second
)

// waiter follows a run to its end, through all its attempts, by asking the API.
type waiter struct {
	a    *app
	api  *api
	logs bool // show what the run prints

	log     *logReader // nil without logs
	noticed bool       // the user was told why nothing happens
	running bool       // the user was told where it runs
}

// wait returns the last attempt once it is finished, or held for a person. It gives up after the patience without an
// answer; the run goes on then, as it does after Ctrl-C.
func (w *waiter) wait(ctx context.Context, run *wire.Run) (*wire.Run, error) {
	if w.logs {
		w.log = w.a.newLogReader(w.api, run.ID)
	}
	last, err := w.until(ctx, run)
	if w.log != nil {
		if closed := w.log.close(); err == nil {
			err = closed
		}
	}
	return last, err
}

// until asks again and again.
func (w *waiter) until(ctx context.Context, run *wire.Run) (*wire.Run, error) {
	began, answered := time.Now(), time.Now()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		next, ended, err := w.look(ctx, run, time.Since(began))
		switch {
		case ctx.Err() != nil:
			return run, interrupted(run)
		case err == nil && ended:
			return next, nil
		case err == nil:
			run, answered = next, time.Now()
		case !isAway(err):
			return run, err
		case time.Since(answered) >= w.a.Patience:
			return run, fail(exitUnavailable, "%w", err).withHint("run %d goes on without this command; %s", run.ID, howToSee(run))
		}
		select {
		case <-ctx.Done():
			return run, interrupted(run)
		case <-tick.C:
		}
	}
}

// look asks once, and tells what is new. ended says that no attempt follows.
func (w *waiter) look(ctx context.Context, last *wire.Run, waited time.Duration) (run *wire.Run, ended bool, err error) {
	if run, err = w.get(ctx, last.ID); err != nil {
		return last, false, err
	}
	switch jobs.State(run.State) {
	case jobs.StateHeld:
		return run, true, nil
	case jobs.StateFinished:
		return w.after(ctx, run)
	case jobs.StatePending, jobs.StateRunning:
	}
	w.progress(ctx, run, waited)
	if w.log != nil && run.StartedAt != nil {
		_, err = w.log.catchUp(ctx)
	}
	return run, false, err
}

func (w *waiter) get(ctx context.Context, id int64) (*wire.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, w.a.Patience)
	defer cancel()
	run := new(wire.Run)
	return run, w.api.get(ctx, runPath(id, ""), nil, run)
}

// after shows the rest of what a finished run has printed, and finds the attempt that follows: it is inserted in the
// transaction that ends this one, so it is there now or never.
func (w *waiter) after(ctx context.Context, run *wire.Run) (next *wire.Run, ended bool, err error) {
	end, err := w.end(ctx, run.ID)
	if err != nil || end.NextRunID == nil {
		return run, err == nil, err
	}
	if next, err = w.get(ctx, *end.NextRunID); err != nil {
		return run, false, err
	}
	if w.log != nil {
		if err := w.log.close(); err != nil {
			return run, false, err
		}
		w.log.run, w.log.offset = next.ID, 0
	}
	w.a.say("%s; attempt %d follows as run %d", ending(run), next.Attempt, next.ID)
	w.noticed, w.running = false, false
	return next, jobs.State(next.State) == jobs.StateHeld, nil
}

// end is what the API says behind the last byte of a finished run.
func (w *waiter) end(ctx context.Context, id int64) (p wire.Output, err error) {
	if w.log != nil {
		return w.log.catchUp(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, w.a.Patience)
	defer cancel()
	return p, w.api.get(ctx, outputPath(id), url.Values{"limit": {"1"}}, &p)
}

// progress tells once where the run is, or why it is nowhere yet.
func (w *waiter) progress(ctx context.Context, run *wire.Run, waited time.Duration) {
	switch {
	case jobs.State(run.State) == jobs.StateRunning && !w.running:
		w.running = true
		w.a.say("run %d of %s is running on replica %s", run.ID, run.Job, orNone(run.Replica))
	case jobs.State(run.State) == jobs.StatePending && !w.noticed && waited >= noticeAfter:
		w.noticed = true
		w.a.say("%s", w.whyPending(ctx, run))
	}
}

func (w *waiter) whyPending(ctx context.Context, run *wire.Run) string {
	ctx, cancel := context.WithTimeout(ctx, w.a.Patience)
	defer cancel()
	var lock struct {
		Owner      string    `json:"owner"`
		AcquiredAt time.Time `json:"acquired_at"`
	}
	if err := w.api.get(ctx, "/locks/"+url.PathEscape(run.Resource), nil, &lock); err == nil {
		return "run " + runID(run) + " waits for the lock " + run.Resource + ", which is held since " + stamp(lock.AcquiredAt) +
			" by " + lock.Owner + "; `cronlatch locks list` shows it"
	}
	return "no replica has taken run " + runID(run) + " yet; is `cronlatch serve` running with this database and this job?"
}

// passing tells an outage, which may be over in a moment, from an error that stays.
func passing(err error) bool {
	return database.Unavailable(err) || database.Unknown(err) || database.Retryable(err) || errors.Is(err, context.DeadlineExceeded)
}

func interrupted(run *wire.Run) error {
	return fail(exitInterrupted, "not waiting any longer; run %d goes on", run.ID).withHint("%s", howToSee(run))
}

func howToSee(run *wire.Run) string {
	return "`cronlatch runs list --job " + run.Job + "` shows how it ends"
}

// exitCodeOf is the code of a command that waited for the run: the job's own where there is one.
func exitCodeOf(run *wire.Run) int {
	switch jobs.Outcome(orNone(run.Outcome)) {
	case jobs.OutcomeSucceeded:
		return ownCode(run, exitOK)
	case jobs.OutcomeFailed:
		if run.Signal != nil {
			return signalCode(*run.Signal)
		}
		if reasonOf(run) == jobs.ReasonStart {
			return nonZero(ownCode(run, exitNotExecutable))
		}
		return nonZero(ownCode(run, exitFailure))
	case jobs.OutcomeTimedOut:
		return exitTimedOut
	case jobs.OutcomeLost:
		return exitLost
	case jobs.OutcomeSkipped, jobs.OutcomeMissed:
		if r := reasonOf(run); r == jobs.ReasonOverlap || r == jobs.ReasonLockHeld {
			return exitBusy
		}
		return nonZero(ownCode(run, exitFailure))
	case jobs.OutcomeCancelled:
		return exitFailure
	default: // held: the attempt before was lost
		return exitLost
	}
}

func ownCode(run *wire.Run, otherwise int) int {
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
