package scheduler

import (
	"context"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/jobs"
)

// ErrFinished says that the run has ended: there is nothing to cancel.
var ErrFinished = errors.New("scheduler: the run has ended")

// RunRequest asks for something about one run.
type RunRequest struct {
	ID     int64
	By     string // who asks
	Reason string // optional
}

// Cancel ends a run that has not begun, and asks the replica of a running one to end it, which it does within a second. No
// further attempt follows. Cancelling a run that is being cancelled changes nothing. The answer is the run as it is then. It
// answers jobs.ErrRunNotFound or ErrFinished.
func (a *Actions) Cancel(ctx context.Context, r RunRequest) (run jobs.Run, err error) {
	err = a.s.tx(ctx, func(tx bun.Tx) error {
		row, err := a.lockRun(ctx, tx, r.ID)
		if err != nil {
			return err
		}
		run = *row
		switch {
		case run.State == jobs.StateFinished:
			return ErrFinished
		case run.CancelReason != "":
			return nil // somebody was first
		}
		facts := map[string]any{"requested_by": r.By}
		if r.Reason != "" {
			facts["reason"] = r.Reason
		}
		was := run.State
		if run, err = a.cancelNow(ctx, tx, &run, facts); err != nil {
			return err
		}
		return a.audit(ctx, tx, deed{
			action: audit.RunCancel, by: r.By, job: run.Job, run: run.ID, resource: run.Resource, reason: r.Reason,
			facts: map[string]any{"state": was},
		})
	})
	if err != nil {
		return jobs.Run{}, fmt.Errorf("cancelling run %d: %w", r.ID, err)
	}
	if run.State == jobs.StateFinished { // it was not before
		tellEnded(a.observe, &run)
	}
	return run, nil
}

func (a *Actions) cancelNow(ctx context.Context, tx bun.Tx, run *jobs.Run, facts map[string]any) (jobs.Run, error) {
	if run.State == jobs.StateRunning {
		if err := a.s.askToEnd(ctx, tx, []endRequest{{run.ID, jobs.ReasonRequested, detail(facts)}}); err != nil {
			return jobs.Run{}, err
		}
		asked, err := a.lockRun(ctx, tx, run.ID)
		return valueOr(asked), err
	}
	ended, err := a.s.end(ctx, tx, []ending{{
		ID: run.ID, FromState: run.State, Outcome: jobs.OutcomeCancelled, Reason: jobs.ReasonRequested, Detail: detail(facts),
	}})
	if err != nil || len(ended) != 1 {
		return jobs.Run{}, errors.Join(err, checkOne(len(ended)))
	}
	return ended[0], nil
}

// checkOne complains about a row that changed under its lock.
func checkOne(n int) error {
	if n == 1 {
		return nil
	}
	return fmt.Errorf("%d rows in place of one", n)
}
