package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/scheduler"
)

var errNullMember = errors.New("a member is null")

// maxConcurrency bounds how many runs of one backfill run at a time; the fleet's capacity bounds them as well.
const maxConcurrency = 1000

// backfillJob runs what fell due in a span of the past, or says what it would run.
func backfillJob(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	given, err := c.body("from", "until", "concurrency", "params", "force", "preview", "reason")
	if err != nil {
		return err
	}
	f := &fields{given: given}
	r := scheduler.BackfillRequest{
		From: f.instant("from"), Until: f.instant("until"), Params: f.params(), Force: f.boolean("force"), Preview: f.boolean("preview"),
		Concurrency: int(f.integer(field{name: "concurrency"}, maxConcurrency)),
		Reason:      f.optional("reason", locking.MaxReasonBytes), By: c.actor(),
	}
	if !r.Until.IsZero() && r.Until.Before(r.From) {
		f.add("until", "range", "is before from")
	}
	if err := f.problem(); err != nil {
		return err
	}
	if r.Job, err = c.knownJob(); err != nil {
		return err
	}
	var items []scheduler.BackfillItem
	do := func(ctx context.Context, a *scheduler.Actions) (err error) {
		items, err = a.Backfill(ctx, r)
		return err
	}
	if r.Preview {
		err = c.preview(do)
	} else {
		err = c.act(audit.JobBackfill, &jobs.Run{Job: r.Job.Name}, r.Reason, do)
	}
	if err != nil {
		return err
	}
	writeJSON(c.w, "application/json", http.StatusOK, backfilled(&r, items))
	return nil
}

// preview changes nothing, and so leaves no line in the audit.
func (c *call) preview(do func(context.Context, *scheduler.Actions) error) error {
	ctx, cancel := c.reading()
	defer cancel()
	err := c.checked(ctx)
	if err == nil {
		var a *scheduler.Actions
		if a, err = scheduler.OpenActions(c.o.Fleet.DB, c.o.Fleet.Observe...); err == nil {
			err = do(ctx, a)
		}
	}
	return c.refusedAction(err)
}

func backfilled(r *scheduler.BackfillRequest, items []scheduler.BackfillItem) wire.Backfilled {
	out := wire.Backfilled{Job: r.Job.Name, Preview: r.Preview, Instants: make([]wire.BackfillItem, len(items))}
	for i := range items {
		item := wire.BackfillItem{
			ScheduledAt: items[i].ScheduledAt, Resource: items[i].Resource, Action: wire.BackfillRun, Why: wire.OrNull(items[i].Why),
			RunID: wire.OrNull(items[i].RunID),
		}
		if items[i].Why == "" {
			out.Runs++
		} else {
			item.Action = wire.BackfillSkip
			out.Skipped++
		}
		out.Instants[i] = item
	}
	return out
}

// instant is an RFC 3339 time.
func (f *fields) instant(name string) time.Time {
	text, ok := f.text(name)
	if !ok {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() < 1970 || at.Year() > 9999 {
		f.add(name, "invalid", "must be a time like 2026-03-07T12:00:00Z")
	}
	return at
}
