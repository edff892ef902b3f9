package main

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/filter"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
)

func (a *app) runsCommand() *cobra.Command {
	return groupCommand("runs", "Look at the ledger of runs, cancel and retry them", "  $ cronlatch runs list --outcome failed --since 1d",
		a.runsListCommand(), a.runsShowCommand(), a.runsCancelCommand(), a.runsRetryCommand(), a.runsExportCommand())
}

func (a *app) runsListCommand() *cobra.Command {
	var format output.Format
	var chosen jobs.RunFilter
	var server, terms string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List runs, the newest scheduled instant first",
		Example: "  $ cronlatch runs list --job backup:db --limit 5\n  $ cronlatch runs list --outcome failed --since 1d -o json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if chosen.Limit < 1 || chosen.Limit > maxList {
				return usage("--limit must be between 1 and %d", maxList)
			}
			if _, err := filter.Parse(terms); err != nil {
				return usage("--filter: %w", err)
			}
			ctx := cmd.Context() // it may take longer than the patience with one call
			return a.withAPI(ctx, server, func(_ context.Context, c *api) error {
				return a.listRuns(ctx, c, filterTerms(terms, &chosen), chosen.Limit, format)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&terms, "filter", "", "which runs, such as \"job:report:* -trigger:manual\"; the flags below are terms, too")
	flags.StringVar(&chosen.Job, "job", "", "only runs of this job")
	flags.Var(choice[jobs.State]{&chosen.State, []jobs.State{jobs.StatePending, jobs.StateRunning, jobs.StateHeld, jobs.StateFinished}},
		"state", "only runs in this state")
	outcome := choice[jobs.Outcome]{&chosen.Outcome, []jobs.Outcome{
		jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeCancelled, jobs.OutcomeSkipped, jobs.OutcomeMissed, jobs.OutcomeLost,
	}}
	flags.Var(outcome, "outcome", "one of "+strings.Join(outcome.words(), ", "))
	flags.Var(age{&chosen.Since, a.Now}, "since", "only runs scheduled within this time (2h, 3d), or since an instant")
	flags.IntVar(&chosen.Limit, "limit", 50, "how many at most")
	addServer(cmd, &server)
	addOutput(cmd, &format, listFormats()...)
	return cmd
}

// maxList bounds every list.
const maxList = 10_000

// maxPage is how many runs the API gives at a time.
const maxPage = 1000

// filterTerms are the flags as terms of the filter's language, behind those that were given as such.
func filterTerms(terms string, f *jobs.RunFilter) string {
	all := []string{terms}
	for _, term := range [][2]string{{"job", f.Job}, {"state", string(f.State)}, {"outcome", string(f.Outcome)}} {
		if term[1] != "" {
			all = append(all, filter.TermOf(term[0], term[1]))
		}
	}
	if !f.Since.IsZero() {
		all = append(all, filter.TermOf("since", f.Since.UTC().Format(time.RFC3339Nano)))
	}
	return strings.TrimSpace(strings.Join(all, " "))
}

// listRuns shows as many runs as were asked for, page by page.
func (a *app) listRuns(ctx context.Context, c *api, terms string, limit int, format output.Format) error {
	var runs []wire.Run
	query := url.Values{"filter": {terms}}
	for len(runs) < limit {
		query.Set("limit", strconv.Itoa(min(limit-len(runs), maxPage)))
		page, err := a.runPage(ctx, c, query)
		if err != nil {
			return err
		}
		runs = append(runs, page.Runs...)
		if page.NextCursor == "" {
			break
		}
		query.Set("cursor", page.NextCursor)
	}
	if len(runs) == 0 {
		a.say("no such runs; `cronlatch run JOB` makes one")
	}
	if len(runs) == limit {
		a.say("the newest %d; --limit shows more", limit)
	}
	views := make([]runView, len(runs))
	for i := range runs {
		views[i] = runView{runs[i]}
	}
	return output.Write(a.answer(format), output.List[runView]{Items: views, Columns: runColumns(), Name: runView.name})
}

// runView is the API's run with the cells of a table.
type runView struct{ wire.Run }

func (v runView) name() string { return strconv.FormatInt(v.ID, 10) }

// orNone is the text of a value that may not be set.
func orNone(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func runColumns() []output.Column[runView] {
	return []output.Column[runView]{
		{Title: "ID", Cell: runView.name, Right: true},
		{Title: "JOB", Cell: func(v runView) string { return v.Job }},
		{Title: "SCHEDULED", Cell: func(v runView) string { return stamp(v.ScheduledAt) }},
		{Title: "TRY", Cell: func(v runView) string { return strconv.Itoa(v.Attempt) }, Right: true},
		{Title: "OUTCOME", Cell: runView.status, Tone: runView.tone},
		{Title: "REASON", Cell: runView.why},
		{Title: "REPLICA", Cell: func(v runView) string { return orNone(v.Replica) }},
		{Title: "TOKEN", Cell: runView.token, Right: true},
		{Title: "STARTED", Cell: func(v runView) string { return stampOrNone(v.StartedAt) }},
		{Title: "TOOK", Cell: runView.took, Right: true},
	}
}

// status is the outcome, or the state while there is none.
func (v runView) status() string {
	if v.Outcome != nil {
		return *v.Outcome
	}
	return v.State
}

func (v runView) tone() output.Tone {
	switch jobs.Outcome(orNone(v.Outcome)) {
	case jobs.OutcomeSucceeded:
		return output.Good
	case jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeLost, jobs.OutcomeMissed:
		return output.Bad
	case jobs.OutcomeCancelled, jobs.OutcomeSkipped:
		return output.Warn
	default:
		return output.Plain
	}
}

// why is the reason with the number behind it.
func (v runView) why() string {
	switch {
	case v.Signal != nil:
		return orNone(v.Reason) + " " + *v.Signal
	case v.ExitCode != nil && *v.ExitCode != 0:
		return orNone(v.Reason) + " " + strconv.Itoa(*v.ExitCode)
	default:
		return orNone(v.Reason)
	}
}

func (v runView) token() string {
	if v.FencingToken == nil {
		return ""
	}
	return strconv.FormatInt(*v.FencingToken, 10)
}

func (v runView) took() string {
	if v.StartedAt == nil || v.FinishedAt == nil {
		return ""
	}
	return span(v.FinishedAt.Sub(*v.StartedAt))
}
