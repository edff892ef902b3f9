package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/explain"
	"github.com/cronlatch/cronlatch/jobs"
)

// attemptIDs are the attempts that are told of, as a statement takes them.
func (e *explaining) attemptIDs() string {
	ids := make([]int64, len(e.f.Attempts))
	for i := range e.f.Attempts {
		ids[i] = e.f.Attempts[i].ID
	}
	return encode(ids)
}

// kept reads who made the rows, and how the locks were kept.
func (e *explaining) kept(ctx context.Context) error {
	if len(e.f.Attempts) == 0 {
		return nil
	}
	var rows []struct {
		ID        int64  `bun:"id"`
		PlannedBy string `bun:"planned_by"`
		Renewals  *int   `bun:"renewals"`
		LeastLeft *int64 `bun:"least_left_ms"`
	}
	if err := e.tx.NewRaw(e.q.kept, e.attemptIDs()).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("reading how runs were kept: %w", err)
	}
	for _, r := range rows {
		k := explain.Kept{PlannedBy: r.PlannedBy, Renewals: r.Renewals}
		if r.LeastLeft != nil {
			k.LeastLeft = new(time.Duration(*r.LeastLeft) * time.Millisecond)
		}
		e.f.Kept[r.ID] = k
	}
	return nil
}

// waits reads what the attempts were seen to wait for.
func (e *explaining) waits(ctx context.Context) error {
	if len(e.f.Attempts) == 0 {
		return nil
	}
	var rows []struct {
		RunID  int64       `bun:"run_id"`
		Cause  string      `bun:"cause"`
		Holder string      `bun:"holder"`
		SeenAt dbtime.Time `bun:"seen_at"`
		SeenBy string      `bun:"seen_by"`
		Detail rawText     `bun:"detail"`
	}
	if err := e.tx.NewRaw(e.store.waits().read, e.attemptIDs()).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("reading what runs waited for: %w", err)
	}
	for _, r := range rows {
		e.f.Waits = append(e.f.Waits, explain.Wait{
			RunID: r.RunID, Cause: jobs.Reason(r.Cause), Holder: r.Holder, At: r.SeenAt.Time, By: r.SeenBy, Detail: json.RawMessage(r.Detail),
		})
	}
	return nil
}

// gaps finds the spans in which nobody reached the database, between when a run was due and when it started.
func (e *explaining) gaps(ctx context.Context, due, until time.Time) error {
	spans, err := e.lifetimes(ctx, e.tx, due, until)
	if err != nil {
		return err
	}
	certain := e.silence/3 + explain.WaitWorthTelling // a replica says every third of it that it is there
	var alive time.Time
	for _, s := range spans {
		if from := later(alive, due); earliest(s.From.Time, until).Sub(from) >= certain {
			e.f.Gaps = append(e.f.Gaps, explain.Gap{From: alive, Until: s.From.Time})
		}
		alive = later(alive, s.Until.Time)
	}
	return nil
}

// behind: the last instant that fell due has no run where nobody has planned since. Then that is the answer, and not the run
// before it.
func (e *explaining) behind(context.Context) error {
	j := e.f.Definition
	if e.r.RunID != 0 || e.r.At != "" || j == nil || j.Schedule == nil || e.f.Run != nil && e.f.Run.State != jobs.StateFinished {
		return nil
	}
	last := j.Schedule.Last(e.f.Now)
	for _, p := range e.f.Positions {
		if p.Current && p.At.Before(last) && e.f.Now.Sub(last) >= explain.WaitWorthTelling {
			e.f.Instant, e.f.Run, e.f.Attempts = last, nil, nil
		}
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
