package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/explain"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// occurrence reads all attempts of the run that is told of. Of a run that was not asked for by its id it is the last one.
func (e *explaining) occurrence(ctx context.Context) (err error) {
	if e.f.Run == nil {
		return nil
	}
	if e.f.Attempts, err = e.runs(ctx, explainOccurrence, e.f.Job, e.f.Run.Occurrence); err != nil {
		return err
	}
	slices.Reverse(e.f.Attempts)
	if e.r.RunID == 0 && len(e.f.Attempts) > 0 {
		e.f.Run = &e.f.Attempts[len(e.f.Attempts)-1]
	}
	if len(e.f.Attempts) == 0 || !slices.ContainsFunc(e.f.Attempts, func(r jobs.Run) bool { return r.ID == e.f.Run.ID }) {
		e.f.Attempts = append([]jobs.Run{*e.f.Run}, e.f.Attempts...) // there are more than are told
	}
	return nil
}

// told is when the story begins.
func (e *explaining) told() time.Time {
	switch {
	case len(e.f.Attempts) > 0:
		return earliest(e.f.Attempts[0].CreatedAt, e.f.Attempts[0].DueAt)
	case !e.f.Instant.IsZero():
		return earliest(e.f.Instant, e.f.Now)
	default:
		return e.f.Now
	}
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// neighbours reads the runs around: those that ran beside it, and where the history begins.
func (e *explaining) neighbours(ctx context.Context) (err error) {
	if e.f.Oldest, err = e.one(ctx, explainOldest, e.f.Job); err != nil {
		return err
	}
	if at := e.f.Instant; !at.IsZero() {
		if err := e.tx.NewRaw(explainNewer, e.f.Job, e.arg(at)).Scan(ctx, &e.f.Newer); err != nil {
			return fmt.Errorf("counting newer runs: %w", err)
		}
	}
	for i := range e.f.Attempts {
		a := &e.f.Attempts[i]
		until := e.f.Now
		switch {
		case a.StartedAt != nil:
			until = *a.StartedAt
		case a.FinishedAt != nil:
			until = *a.FinishedAt
		}
		if until.Sub(a.DueAt) < explain.WaitWorthTelling {
			continue
		}
		if err := e.gaps(ctx, a.DueAt, until); err != nil {
			return err
		}
		beside, err := e.runs(ctx, explainBeside, e.f.Job, e.arg(a.DueAt.Add(-besideDays)), e.arg(until), e.arg(until), e.arg(a.DueAt))
		if err != nil {
			return err
		}
		slices.Reverse(beside)
		for _, b := range beside {
			if b.Occurrence != a.Occurrence && !slices.ContainsFunc(e.f.Beside, func(o jobs.Run) bool { return o.ID == b.ID }) {
				e.f.Beside = append(e.f.Beside, b)
			}
		}
	}
	return nil
}

// related reads the runs that others name.
func (e *explaining) related(ctx context.Context) error {
	ids := []int64{}
	for i := range e.f.Attempts {
		ids = append(ids, explain.Mentioned(&e.f.Attempts[i])...)
	}
	if e.f.Newest != nil {
		ids = append(ids, explain.Mentioned(e.f.Newest)...)
	}
	for i := range e.f.Waits {
		ids = append(ids, explain.WaitedFor(e.f.Waits[i].Detail)...)
	}
	named, err := e.byIDs(ctx, ids)
	for i := range named {
		e.f.Related[named[i].ID] = named[i]
	}
	return err
}

func (e *explaining) byIDs(ctx context.Context, ids []int64) ([]jobs.Run, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return e.runs(ctx, e.q.byIDs, encode(ids))
}

// streams reads what came before and after.
func (e *explaining) streams(ctx context.Context) (err error) {
	if e.f.Run != nil && len(e.f.Run.Follows.Runs) > 0 {
		ids := []int64{}
		for _, f := range e.f.Run.Follows.Runs {
			ids = append(ids, f.RunID)
		}
		e.f.Upstream, err = e.byIDs(ctx, ids)
	} else if e.f.Definition != nil {
		for _, a := range e.f.Definition.After {
			newest, err := e.one(ctx, explainBefore, a.Job, e.arg(e.f.Now))
			if err != nil {
				return err
			}
			if newest != nil {
				e.f.Upstream = append(e.f.Upstream, *newest)
			}
		}
	}
	if err != nil || e.f.Run == nil {
		return err
	}
	for _, j := range e.r.Known {
		if slices.ContainsFunc(j.After, func(a jobs.After) bool { return a.Job == e.f.Job }) {
			if err := e.followers(ctx, j.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// followers reads the runs of one job that came after the occurrence.
func (e *explaining) followers(ctx context.Context, job string) error {
	occurrences := []string{e.f.Run.Occurrence}
	if e.f.Run.Period != "" {
		occurrences = append(occurrences, jobs.PeriodOccurrence(e.f.Run.Period))
	}
	for _, occurrence := range occurrences {
		runs, err := e.runs(ctx, explainOccurrence, job, occurrence)
		if err != nil {
			return err
		}
		slices.Reverse(runs)
		for _, r := range runs {
			if slices.ContainsFunc(r.Follows.Runs, func(f jobs.Followed) bool {
				return slices.ContainsFunc(e.f.Attempts, func(a jobs.Run) bool { return a.ID == f.RunID })
			}) {
				e.f.Downstream = append(e.f.Downstream, r)
			}
		}
	}
	return nil
}

// fleet reads the pauses, the replicas and the limits in use.
func (e *explaining) fleet(ctx context.Context) error {
	pauses, err := e.pausesBetween(ctx, e.tx, e.told(), e.f.Now)
	if err != nil {
		return err
	}
	for _, p := range pauses {
		if p.Job == "" || p.Job == e.f.Job {
			e.f.Pauses = append(e.f.Pauses, explain.Pause{Job: p.Job, Reason: p.Reason, By: p.By, From: p.From, Until: p.Until})
		}
	}
	there, err := Replicas(ctx, e.tx, e.silence)
	if err != nil {
		return err
	}
	for i := range there {
		r := &there[i]
		e.f.Replicas = append(e.f.Replicas, explain.Replica{
			Name: r.Name, Labels: r.Labels, Running: r.Running, Capacity: r.Capacity, Draining: r.Draining || !r.DrainAskedAt.IsZero(),
		})
	}
	var seen dbtime.Time
	if err := e.tx.NewRaw(explainSeen).Scan(ctx, &seen); err != nil {
		return fmt.Errorf("reading when a replica was last heard of: %w", err)
	}
	e.f.SeenAt = seen.Time
	var counts []tagCount
	if err := e.tx.NewRaw(e.store.q.countTags).Scan(ctx, &counts); err != nil {
		return fmt.Errorf("counting the runs of limited tags: %w", err)
	}
	for _, c := range counts {
		e.f.Used[c.Tag] = c.N
	}
	return nil
}

// locks reads who holds what unfinished runs and the next instant need.
func (e *explaining) locks(ctx context.Context) error {
	resources := []string{}
	for i := range e.f.Attempts {
		if e.f.Attempts[i].State != jobs.StateFinished {
			resources = append(resources, e.f.Attempts[i].Resource)
		}
	}
	if j := e.f.Definition; j != nil && j.Schedule != nil {
		if at := j.Schedule.Next(e.f.Now); !at.IsZero() {
			resources = append(resources, j.Resource.At(at))
		}
	}
	slices.Sort(resources)
	locks, err := locking.NewStore(e.tx)
	if err != nil {
		return err
	}
	for _, resource := range slices.Compact(resources) {
		l, err := locks.Get(ctx, resource)
		if errors.Is(err, locking.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the lock of %s: %w", resource, err)
		}
		e.f.Locks = append(e.f.Locks, explain.Lock{
			Resource: l.Resource, Token: l.FencingToken, Since: l.AcquiredAt, Renewed: l.RenewedAt, Until: l.ExpiresAt, Metadata: l.Metadata,
		})
	}
	return nil
}

// plans reads how far the job's schedules were planned. A job that is neither defined nor ever was planned is none.
func (e *explaining) plans(ctx context.Context) error {
	var rows []PositionRow
	if err := e.tx.NewRaw(explainPositions, e.f.Job).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("reading the positions: %w", err)
	}
	current := ""
	if j := e.f.Definition; j != nil && j.Schedule != nil {
		current = j.Schedule.Hash()
	}
	for _, p := range rows {
		e.f.Positions = append(e.f.Positions, explain.Position{Current: p.Hash == current, At: p.Position.Time})
	}
	if e.f.Definition == nil && e.f.Oldest == nil && len(rows) == 0 {
		return ErrNoJob
	}
	if e.f.Run == nil || e.f.Run.OncePer != jobs.OncePerResource {
		return nil
	}
	var done []struct {
		RunID int64 `bun:"run_id"`
	}
	if err := e.tx.NewRaw(explainDone, e.f.Job, e.f.Run.Resource).Scan(ctx, &done); err != nil {
		return fmt.Errorf("reading what is done: %w", err)
	}
	if len(done) > 0 {
		e.f.DoneBy = done[0].RunID
	}
	return nil
}

// deeds reads what the audit has about the runs.
func (e *explaining) deeds(ctx context.Context) error {
	if len(e.f.Attempts) == 0 {
		return nil
	}
	ids := make([]int64, len(e.f.Attempts))
	for i := range e.f.Attempts {
		ids[i] = e.f.Attempts[i].ID
	}
	var rows []auditLine
	// A row is written in the transaction of what it is about, by a clock that may have been read before that of the run.
	from := e.f.Attempts[0].CreatedAt.Add(-time.Minute)
	if err := e.tx.NewRaw(e.q.audit, e.arg(from), encode(ids)).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("reading the audit: %w", err)
	}
	for i := range rows {
		r := rows[i].entry()
		e.f.Audit = append(e.f.Audit, explain.Entry{
			At: r.At, Action: r.Action, Outcome: r.Outcome, Actor: r.ActorID, Reason: r.Reason, Replica: r.Replica, RunID: r.RunID,
		})
	}
	return nil
}
