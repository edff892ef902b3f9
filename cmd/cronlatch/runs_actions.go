package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/filter"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/runexport"
	"github.com/cronlatch/cronlatch/internal/wire"
)

// runPath is where the API has a run; what is more follows the id.
func runPath(id int64, more string) string { return "/runs/" + strconv.FormatInt(id, 10) + more }

func runIDs(args []string) ([]int64, error) {
	ids := make([]int64, len(args))
	for i, text := range args {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 1 {
			return nil, usage("%q is no run's id; `cronlatch runs list` shows them", text)
		}
		ids[i] = id
	}
	return ids, nil
}

// aboutRun adds what to type to an answer about one run.
func aboutRun(id int64, err error) error {
	if isProblem(err, "not_found") {
		return fail(exitFailure, "there is no run %d", id).withHint("`cronlatch runs list` shows the newest ones")
	}
	if err == nil {
		return nil
	}
	f := classify(err)
	return &failure{code: f.code, err: fmt.Errorf("run %d: %w", id, f), hint: f.hint}
}

func (a *app) runsShowCommand() *cobra.Command {
	var format output.Format
	var server string
	cmd := &cobra.Command{
		Use: "show RUN", Short: "Show everything about one run", Example: "  $ cronlatch runs show 1207", Args: oneArg("a run's id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := runIDs(args)
			if err != nil {
				return err
			}
			return a.withAPI(cmd.Context(), server, func(ctx context.Context, c *api) error {
				var run wire.Run
				if err := c.get(ctx, runPath(ids[0], ""), nil, &run); err != nil {
					return aboutRun(ids[0], err)
				}
				return output.WriteValue(a.answer(format), run, func() []string { return runLines(&run) })
			})
		},
	}
	addServer(cmd, &server)
	addOutput(cmd, &format, output.Table, output.JSON, output.YAML)
	return cmd
}

// runLines are one line for each key that has a value.
func runLines(r *wire.Run) (lines []string) {
	add := func(key, value string) {
		if value != "" {
			lines = append(lines, fmt.Sprintf("%-14s %s", key, output.Clean(value)))
		}
	}
	v := runView{*r}
	add("id", v.name())
	add("job", r.Job)
	add("occurrence", r.Occurrence)
	add("scheduled at", stamp(r.ScheduledAt))
	add("attempt", strconv.Itoa(r.Attempt))
	add("state", r.State)
	add("outcome", orNone(r.Outcome))
	add("reason", v.why())
	add("detail", string(r.Detail))
	add("trigger", r.Trigger)
	add("replica", orNone(r.Replica))
	add("resource", r.Resource)
	add("fencing token", v.token())
	add("due at", stamp(r.DueAt))
	add("started at", stampOrNone(r.StartedAt))
	add("finished at", stampOrNone(r.FinishedAt))
	add("took", v.took())
	add("requested by", orNone(r.RequestedBy))
	for name, text := range r.Params {
		add("param "+name, text)
	}
	return lines
}

func (a *app) runsCancelCommand() *cobra.Command {
	var server, reason string
	cmd := &cobra.Command{
		Use: "cancel RUN...", Short: "End runs, or keep them from starting; no further attempt follows",
		Example: "  $ cronlatch runs cancel 1207 --reason \"wrong month\"", Args: someArgs("the ids of runs"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachRun(cmd.Context(), server, args, func(ctx context.Context, c *api, id int64) error {
				var run wire.Run
				if err := c.post(ctx, runPath(id, "/cancel"), wire.Cancel{Reason: reason}, &run); err != nil {
					return err
				}
				if run.Outcome == nil {
					a.say("run %d of %s is asked to end; `cronlatch runs show %d` shows when it has", id, run.Job, id)
				} else {
					a.say("run %d of %s is cancelled", id, run.Job)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "for the audit")
	addServer(cmd, &server)
	return cmd
}

func (a *app) runsRetryCommand() *cobra.Command {
	var server string
	var request wire.Retry
	cmd := &cobra.Command{
		Use: "retry RUN...", Short: "Add the attempt after a finished run, or release a held one",
		Example: "  $ cronlatch runs retry 1207", Args: someArgs("the ids of runs"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachRun(cmd.Context(), server, args, func(ctx context.Context, c *api, id int64) error {
				var run wire.Run
				if err := c.post(ctx, runPath(id, "/retry"), request, &run); err != nil {
					return err
				}
				a.say("run %d is attempt %d of %s; `cronlatch runs show %d` shows how it goes", run.ID, run.Attempt, run.Job, run.ID)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&request.Reason, "reason", "", "for the audit")
	cmd.Flags().BoolVar(&request.Force, "force", false, "also when it has succeeded, and whatever once_per says")
	addServer(cmd, &server)
	return cmd
}

// eachRun does something with one run after the other, and stops at the first that it cannot be done with.
func (a *app) eachRun(ctx context.Context, server string, args []string, do func(context.Context, *api, int64) error) error {
	ids, err := runIDs(args)
	if err != nil {
		return err
	}
	return a.withAPI(ctx, server, func(ctx context.Context, c *api) error {
		for _, id := range ids {
			if err := aboutRun(id, do(ctx, c, id)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) runsExportCommand() *cobra.Command {
	var server, terms string
	format := runexport.CSV
	cmd := &cobra.Command{
		Use: "export", Short: "Write all runs of a filter as CSV or NDJSON",
		Example: "  $ cronlatch runs export --filter \"outcome:failed since:30d\" > failed.csv", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := filter.Parse(terms); err != nil {
				return usage("--filter: %w", err)
			}
			ctx := cmd.Context() // it may take longer than the patience with one call
			return a.withAPI(ctx, server, func(_ context.Context, c *api) error {
				return a.exportRuns(ctx, c, terms, format)
			})
		},
	}
	cmd.Flags().StringVar(&terms, "filter", "", "which runs, such as job:report:* outcome:failed since:3d")
	cmd.Flags().VarP(choice[runexport.Format]{&format, []runexport.Format{runexport.CSV, runexport.NDJSON}}, "output", "o", "form of the file")
	addServer(cmd, &server)
	return cmd
}

func (a *app) exportRuns(ctx context.Context, c *api, terms string, format runexport.Format) error {
	out, query := runexport.New(a.Stdout, format), url.Values{"filter": {terms}, "limit": {"1000"}}
	for {
		page, err := a.runPage(ctx, c, query)
		if err != nil {
			return err
		}
		if err := out.Write(page.Runs); err != nil {
			return err
		}
		if page.NextCursor == "" {
			return nil
		}
		query.Set("cursor", page.NextCursor)
	}
}

func (a *app) runPage(ctx context.Context, c *api, query url.Values) (page wire.RunPage, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(a.Patience, time.Second))
	defer cancel()
	return page, c.get(ctx, "/runs", query, &page)
}
