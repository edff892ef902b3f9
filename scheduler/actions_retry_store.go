package scheduler

import (
	"context"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/jobs"
)

// Why a run is not retried.
var (
	ErrUnfinished = errors.New("scheduler: the run has not ended")
	ErrSucceeded  = errors.New("scheduler: the run has succeeded")
)

// SupersededError says that there is a later attempt at the run's occurrence.
type SupersededError struct {
	RunID int64 // of the last attempt
}

func (e *SupersededError) Error() string {
	return fmt.Sprintf("scheduler: run %d is a later attempt", e.RunID)
}

// RetryRequest asks for another attempt.
type RetryRequest struct {
	RunRequest

	Force bool      // also when it has succeeded, and whatever once_per says
	Job   *jobs.Job // its definition as it is now; nil when it is not known here
}

// Retry adds the attempt that follows a finished run, due now, and returns it; a run that is held for a person is released,
// and is itself the answer. The attempt waits for earlier runs of the job, and never replaces or skips. It answers
// jobs.ErrRunNotFound, ErrUnfinished, ErrSucceeded, ErrDisabled, or a *SupersededError.
func (a *Actions) Retry(ctx context.Context, r RetryRequest) (run jobs.Run, err error) {
	err = a.s.tx(ctx, func(tx bun.Tx) error {
		was, err := a.one(ctx, tx, a.s.q.byID, r.ID)
		if err != nil {
			return err
		}
		if was == nil {
			return jobs.ErrRunNotFound
		}
		if err := a.lock(ctx, tx, was.Job); err != nil {
			return err
		}
		if was, err = a.lockRun(ctx, tx, r.ID); err != nil {
			return err
		}
		if err := a.retriable(ctx, tx, was, r); err != nil {
			return err
		}
		if run, err = a.retryNow(ctx, tx, was, r); err != nil {
			return err
		}
		return a.audit(ctx, tx, deed{
			action: audit.RunRetry, by: r.By, job: run.Job, run: run.ID, resource: run.Resource, reason: r.Reason,
			facts: map[string]any{"retry_of": was.ID, "attempt": run.Attempt, "force": r.Force},
		})
	})
	if err != nil {
		return jobs.Run{}, fmt.Errorf("retrying run %d: %w", r.ID, err)
	}
	return run, nil
}

func (a *Actions) retriable(ctx context.Context, tx bun.Tx, run *jobs.Run, r RetryRequest) error {
	last, err := a.one(ctx, tx, a.q.last, run.Job, run.Occurrence)
	switch {
	case err != nil:
		return err
	case last != nil && last.ID != run.ID:
		return &SupersededError{last.ID}
	case run.State == jobs.StatePending || run.State == jobs.StateRunning:
		return ErrUnfinished
	case run.Outcome == jobs.OutcomeSucceeded && !r.Force:
		return ErrSucceeded
	case r.Job != nil && !r.Job.Enabled:
		return ErrDisabled
	}
	return nil
}

func (a *Actions) retryNow(ctx context.Context, tx bun.Tx, was *jobs.Run, r RetryRequest) (jobs.Run, error) {
	if was.State == jobs.StateHeld {
		released, err := a.one(ctx, tx, a.q.release, was.ID)
		return valueOr(released), err
	}
	now, err := a.s.now(ctx, tx)
	if err != nil {
		return jobs.Run{}, err
	}
	n := was.AskedRetry(now, r.By, r.Force)
	if r.Job != nil { // the marks of the finished run were cleared by who looked at it
		n.Follow, n.Notify = r.Job.Followed, r.Job.Listened()
	}
	row, err := a.insert(ctx, tx, n)
	if err == nil && row == nil {
		err = checkOne(0)
	}
	return valueOr(row), err
}
