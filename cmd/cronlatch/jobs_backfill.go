package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
)

// backfillFlags are the flags of jobs backfill.
type backfillFlags struct {
	request wire.Backfill
	server  string
	yes     bool
	format  output.Format
}

func (a *app) jobsBackfillCommand() *cobra.Command {
	var f backfillFlags
	cmd := &cobra.Command{
		Use:   "backfill JOB",
		Short: "Run what fell due in a span of the past and did not succeed",
		Long: "backfill shows which instants of the job's schedule it would run and which it leaves out, asks, and runs them in their\n" +
			"order. With --yes it does not ask. Without a terminal nobody can be asked, so that nothing runs without --yes.",
		Example: "  $ cronlatch jobs backfill report:daily --from 2026-05-01T00:00:00Z --until 2026-05-31T00:00:00Z --yes",
		Args:    oneArg("the name of a job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.request.From.IsZero() || f.request.Until.IsZero() {
				return usage("backfill needs --from and --until, times like 2026-05-01T00:00:00Z")
			}
			if f.request.Concurrency < 1 {
				return usage("--concurrency must be at least 1")
			}
			ctx := cmd.Context() // it may take longer than the patience with one call
			return a.withAPI(ctx, f.server, func(_ context.Context, c *api) error {
				return a.backfill(ctx, c, args[0], f)
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(instant{&f.request.From}, "from", "the first instant that counts")
	flags.Var(instant{&f.request.Until}, "until", "the last one")
	addParams(cmd, &f.request.Params)
	flags.IntVar(&f.request.Concurrency, "concurrency", 1, "how many of the runs at a time")
	flags.BoolVar(&f.request.Preview, "preview", false, "only show what would run")
	flags.BoolVar(&f.request.Force, "force", false, "also what has succeeded, and whatever once_per says")
	flags.BoolVar(&f.yes, "yes", false, "run it without asking")
	flags.StringVar(&f.request.Reason, "reason", "", "for the audit")
	addServer(cmd, &f.server)
	addOutput(cmd, &f.format, output.Table, output.JSON, output.YAML)
	return cmd
}

func (a *app) backfill(ctx context.Context, c *api, job string, f backfillFlags) error {
	if f.request.Preview || !f.yes {
		preview, err := a.postBackfill(ctx, c, job, f.request, true)
		if err != nil {
			return err
		}
		asks := !f.request.Preview && preview.Runs > 0
		if asks && a.canAsk() && f.format != output.Table { // the answer is one document: that of what was done
			for _, line := range backfillLines(preview) {
				a.say("%s", line)
			}
		} else if err := a.showBackfill(preview, f.format); err != nil {
			return err
		}
		if !asks {
			return nil
		}
		if err := a.ask(ctx, fmt.Sprintf("start these %d runs? (y/N)", preview.Runs), "nothing was started"); err != nil {
			return err
		}
	}
	done, err := a.postBackfill(ctx, c, job, f.request, false)
	if err != nil {
		return err
	}
	return a.showBackfill(done, f.format)
}

func (a *app) postBackfill(ctx context.Context, c *api, job string, r wire.Backfill, preview bool) (*wire.Backfilled, error) {
	ctx, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	r.Preview = preview
	done := new(wire.Backfilled)
	err := c.post(ctx, "/jobs/"+url.PathEscape(job)+"/backfill", r, done)
	if p, answered := errors.AsType[*problemError](err); answered {
		return nil, refusedJob(job, p, err)
	}
	return done, settled(err)
}

func (a *app) showBackfill(b *wire.Backfilled, f output.Format) error {
	return output.WriteValue(a.answer(f), *b, func() []string { return backfillLines(b) })
}

// shownInstants is how many of the first and of the last instants are shown.
const shownInstants = 5

func backfillLines(b *wire.Backfilled) []string {
	instants, run, left := "instants", "run", "are left out"
	if b.Runs == 1 {
		instants, run = "instant", "runs"
	}
	if b.Preview {
		run = "would run"
	}
	if b.Skipped == 1 {
		left = "is left out"
	}
	lines := []string{fmt.Sprintf("%d %s of %s %s, %d %s", b.Runs, instants, output.Clean(b.Job), run, b.Skipped, left)}
	for i := range b.Instants {
		item := &b.Instants[i]
		if i == shownInstants && len(b.Instants) > 2*shownInstants {
			lines = append(lines, fmt.Sprintf("  ... %d more ...", len(b.Instants)-2*shownInstants))
		}
		if i >= shownInstants && i < len(b.Instants)-shownInstants {
			continue
		}
		line := fmt.Sprintf("  %s %-4s %s", item.ScheduledAt.UTC().Format(time.RFC3339), item.Action, orNone(item.Why))
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}
