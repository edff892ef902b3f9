package scheduler

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/jobs"
)

// ErrDisabled says that the job's definition has enabled: false: no replica would take the run.
var ErrDisabled = errors.New("scheduler: the job is disabled")

// BusyError says that a job with overlap: skip has an unfinished run, and that a manual one would be skipped.
type BusyError struct {
	Run jobs.Run // the one that is in the way
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("scheduler: run %d of the job has not ended, and its overlap is skip", e.Run.ID)
}

// StartRequest asks for a manual run.
type StartRequest struct {
	Job       *jobs.Job
	RequestID string            // asking again with it finds the first run; "" is a random one
	Params    map[string]string // what the job declares; nil is nothing
	By        string            // who asks
	Reason    string            // optional
}

// Start puts a manual run into the ledger, due at once, and returns it. created is false when the request was made before:
// then nothing was done. A paused job runs as well. It answers ErrDisabled, a *BusyError, or what jobs.Job.CheckParams says.
func (a *Actions) Start(ctx context.Context, r StartRequest) (run jobs.Run, created bool, err error) {
	params, err := r.Job.CheckParams(r.Params)
	if err != nil {
		return jobs.Run{}, false, err
	}
	if r.RequestID == "" {
		r.RequestID = rand.Text()
	}
	err = a.s.tx(ctx, func(tx bun.Tx) error {
		created = false
		if err := a.lock(ctx, tx, r.Job.Name); err != nil {
			return err
		}
		first, err := a.one(ctx, tx, a.q.first, r.Job.Name, jobs.ManualOccurrence(r.RequestID))
		if err != nil || first != nil {
			run = valueOr(first)
			return err
		}
		if err := a.free(ctx, tx, r.Job); err != nil {
			return err
		}
		run, err = a.startNow(ctx, tx, jobs.TriggerRequest{Job: r.Job, RequestID: r.RequestID, RequestedBy: r.By, Params: params}, r.Reason)
		created = err == nil
		return err
	})
	if err != nil {
		return jobs.Run{}, false, fmt.Errorf("starting a run: %w", err)
	}
	return run, created, nil
}

// free reports why a manual run of the job would not start.
func (a *Actions) free(ctx context.Context, tx bun.Tx, j *jobs.Job) error {
	if !j.Enabled {
		return ErrDisabled
	}
	if j.Overlap != jobs.OverlapSkip {
		return nil
	}
	busy, err := a.one(ctx, tx, a.q.inTheWay, j.Name)
	if err == nil && busy != nil {
		return &BusyError{*busy}
	}
	return err
}

func (a *Actions) startNow(ctx context.Context, tx bun.Tx, r jobs.TriggerRequest, reason string) (jobs.Run, error) {
	now, err := a.s.now(ctx, tx)
	if err != nil {
		return jobs.Run{}, err
	}
	row, err := a.insert(ctx, tx, jobs.ManualRun(r, now))
	if err != nil {
		return jobs.Run{}, err
	}
	if row == nil { // only a version without the lock of the job can have added it meanwhile
		return jobs.Run{}, errors.New("the request was made at the same time by somebody else; ask again")
	}
	return *row, a.audit(ctx, tx, deed{
		action: audit.RunTrigger, by: r.RequestedBy, job: row.Job, run: row.ID, resource: row.Resource, reason: reason,
	})
}

func valueOr(run *jobs.Run) jobs.Run {
	if run == nil {
		return jobs.Run{}
	}
	return *run
}
