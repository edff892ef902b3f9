package scheduler

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/jobs"
)

// MaxBackfill is how many instants one backfill may have.
const MaxBackfill = 10_000

// countBackfill is up to where the instants of a backfill that is too large are counted.
const countBackfill = 100_000

// ErrNoSchedule says that a job has no schedule whose instants could be filled.
var ErrNoSchedule = errors.New("scheduler: the job has no schedule")

// TooManyError says that a backfill would have more than MaxBackfill instants.
type TooManyError struct {
	Count int
	More  bool // there are more than Count
}

func (e *TooManyError) Error() string {
	more := ""
	if e.More {
		more = "more than "
	}
	return fmt.Sprintf("scheduler: %s%d instants; at most %d are allowed", more, e.Count, MaxBackfill)
}

// BackfillRequest asks for the occurrences of a job in a span of the past.
type BackfillRequest struct {
	Job         *jobs.Job
	From, Until time.Time         // both included; what lies in the future of the database's clock is left out
	Params      map[string]string // of each run
	Concurrency int               // how many of them run at a time; 0 is 1
	Force       bool              // also what has succeeded, as a further attempt, and whatever once_per says
	Preview     bool              // say what would be done
	By          string            // who asks
	Reason      string            // optional
}

// Why an instant is left out of a backfill.
const (
	BackfillSucceeded  = "already_succeeded"
	BackfillUnfinished = "unfinished" // it waits, runs or is held
	BackfillOncePer    = "once_per"
)

// BackfillItem is one instant of a backfill.
type BackfillItem struct {
	ScheduledAt time.Time
	Resource    string
	Why         string // it is left out; "" says that it runs
	RunID       int64  // the run that is the reason for Why, or the new one; 0 in a preview

	attempt int
	done    bool // a marker of once_per is passed over
}

// Backfill adds a run for each occurrence of the job that fell due in the span and did not succeed, due now, and returns them
// all in their order, with those that are left out. They run in their order, Concurrency at a time; scheduled runs of the job
// do not wait for those that have not begun. An occurrence that waits, runs or is held is left out with Force, too: it comes by
// itself. It answers ErrDisabled, ErrNoSchedule, a *TooManyError, or what jobs.Job.CheckParams says.
func (a *Actions) Backfill(ctx context.Context, r BackfillRequest) (items []BackfillItem, err error) {
	if r.Job.Schedule == nil {
		return nil, fmt.Errorf("backfilling: %w", ErrNoSchedule)
	}
	if !r.Job.Enabled {
		return nil, fmt.Errorf("backfilling: %w", ErrDisabled)
	}
	if r.Params, err = r.Job.CheckParams(r.Params); err != nil {
		return nil, err
	}
	r.Concurrency = max(r.Concurrency, 1)
	err = a.s.tx(ctx, func(tx bun.Tx) error {
		if err := a.lock(ctx, tx, r.Job.Name); err != nil {
			return err
		}
		now, err := a.s.now(ctx, tx)
		if err != nil {
			return err
		}
		if items, err = a.backfillItems(ctx, tx, &r, now); err != nil || r.Preview {
			return err
		}
		return a.backfillNow(ctx, tx, &r, now, items)
	})
	if err != nil {
		return nil, fmt.Errorf("backfilling: %w", err)
	}
	return items, nil
}

// backfillItems decides about each instant.
func (a *Actions) backfillItems(ctx context.Context, tx bun.Tx, r *BackfillRequest, now time.Time) ([]BackfillItem, error) {
	until := r.Until
	if until.After(now) {
		until = now
	}
	from := r.From.Add(-time.Nanosecond) // which the list does not include
	at, more := r.Job.Schedule.Between(from, until, MaxBackfill)
	if more {
		at, more = r.Job.Schedule.Between(from, until, countBackfill)
		return nil, &TooManyError{len(at), more}
	}
	last, done, err := a.attempted(ctx, tx, r.Job, at)
	if err != nil {
		return nil, err
	}
	items := make([]BackfillItem, len(at))
	for i := range at {
		items[i] = BackfillItem{ScheduledAt: at[i].UTC(), Resource: r.Job.Resource.At(at[i]), attempt: 1}
		items[i].decide(last[jobs.ScheduledOccurrence(at[i])], done, r.Force)
	}
	return items, nil
}

func (i *BackfillItem) decide(last lastAttempt, done map[string]int64, force bool) {
	i.attempt = last.Attempt + 1
	marked, isDone := done[i.Resource]
	switch {
	case last.ID != 0 && last.State != jobs.StateFinished:
		i.Why, i.RunID = BackfillUnfinished, last.ID
	case last.Outcome != nil && *last.Outcome == jobs.OutcomeSucceeded && !force:
		i.Why, i.RunID = BackfillSucceeded, last.ID
	case isDone && !force:
		i.Why, i.RunID = BackfillOncePer, marked
	default:
		i.done = isDone
	}
}

// backfillNow inserts the runs of the items that run. What a replica plans at the same time is left out after all.
func (a *Actions) backfillNow(ctx context.Context, tx bun.Tx, r *BackfillRequest, now time.Time, items []BackfillItem) error {
	b := jobs.Backfill{
		ID: strings.ToLower(rand.Text()[:12]), RequestedBy: r.By, Params: r.Params, Concurrency: r.Concurrency,
	}
	var rows []jobs.NewRun
	for i := range items {
		if items[i].Why == "" {
			rows = append(rows, r.Job.BackfillRun(items[i].ScheduledAt, now, items[i].attempt, b, items[i].done))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	inserted, err := a.s.insertRuns(ctx, tx, rows)
	if err != nil {
		return err
	}
	ids := make(map[int64]int64, len(inserted))
	for i := range inserted {
		ids[inserted[i].ScheduledAt.Unix()] = inserted[i].ID
	}
	for i := range items {
		if items[i].Why != "" {
			continue
		}
		if items[i].RunID = ids[items[i].ScheduledAt.Unix()]; items[i].RunID == 0 {
			items[i].Why = BackfillUnfinished
		}
	}
	return a.audit(ctx, tx, deed{
		action: audit.JobBackfill, by: r.By, job: r.Job.Name, reason: r.Reason,
		facts: map[string]any{
			"backfill": b.ID, "from": r.From.UTC(), "until": r.Until.UTC(), "runs": len(inserted), "left_out": len(items) - len(inserted),
			"concurrency": b.Concurrency, "force": r.Force,
		},
	})
}
