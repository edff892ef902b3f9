package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/jobs"
)

func (a *app) runsCommand() *cobra.Command {
	return groupCommand("runs", "Look at the ledger of runs", "  $ cronlatch runs list --outcome failed --since 1d", a.runsListCommand())
}

func (a *app) runsListCommand() *cobra.Command {
	var format output.Format
	var filter jobs.RunFilter
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List runs, the newest scheduled instant first",
		Example: "  $ cronlatch runs list --job backup:db --limit 5\n  $ cronlatch runs list --outcome failed --since 1d -o json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.Limit < 1 || filter.Limit > maxList {
				return usage("--limit must be between 1 and %d", maxList)
			}
			return a.withDatabase(cmd.Context(), func(ctx context.Context, db *database.DB) error {
				return a.listRuns(ctx, db, filter, format)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.Job, "job", "", "only runs of this job")
	flags.Var(choice[jobs.State]{&filter.State, []jobs.State{jobs.StatePending, jobs.StateRunning, jobs.StateHeld, jobs.StateFinished}},
		"state", "only runs in this state")
	outcome := choice[jobs.Outcome]{&filter.Outcome, []jobs.Outcome{
		jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeCancelled, jobs.OutcomeSkipped, jobs.OutcomeMissed, jobs.OutcomeLost,
	}}
	flags.Var(outcome, "outcome", "one of "+strings.Join(outcome.words(), ", "))
	flags.Var(age{&filter.Since, a.Now}, "since", "only runs scheduled within this time (2h, 3d), or since an instant")
	flags.IntVar(&filter.Limit, "limit", 50, "how many at most")
	addOutput(cmd, &format, listFormats()...)
	return cmd
}

// maxList bounds every list.
const maxList = 10_000

func (a *app) listRuns(ctx context.Context, db *database.DB, filter jobs.RunFilter, format output.Format) error {
	ledger, err := jobs.OpenLedger(db.Main)
	if err != nil {
		return err
	}
	runs, err := ledger.List(ctx, filter)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		a.say("no such runs; `cronlatch run JOB` makes one")
	}
	if len(runs) == filter.Limit {
		a.say("the newest %d; --limit shows more", filter.Limit)
	}
	views := make([]runView, len(runs))
	for i := range runs {
		views[i] = viewRun(&runs[i])
	}
	return output.Write(a.answer(format), output.List[runView]{Items: views, Columns: runColumns(), Name: runView.name})
}

// runView is a run as commands print it: the API's object. Times are RFC 3339 in UTC; what is not set is null.
type runView struct {
	ID           int64      `json:"id"`
	Job          string     `json:"job"`
	Occurrence   string     `json:"occurrence"`
	ScheduledAt  time.Time  `json:"scheduled_at"`
	Attempt      int        `json:"attempt"`
	State        string     `json:"state"`
	Outcome      *string    `json:"outcome"`
	Reason       *string    `json:"reason"`
	Trigger      string     `json:"trigger"`
	Replica      *string    `json:"replica"`
	Resource     string     `json:"resource"`
	FencingToken *int64     `json:"fencing_token"`
	DueAt        time.Time  `json:"due_at"`
	StartedAt    *time.Time `json:"started_at"`
	FinishedAt   *time.Time `json:"finished_at"`
	ExitCode     *int       `json:"exit_code"`
	Signal       *string    `json:"signal"`
	RequestedBy  *string    `json:"requested_by"`
}

func viewRun(r *jobs.Run) runView {
	return runView{
		ID: r.ID, Job: r.Job, Occurrence: r.Occurrence, ScheduledAt: r.ScheduledAt.UTC(), Attempt: r.Attempt,
		State: string(r.State), Outcome: orNull(string(r.Outcome)), Reason: orNull(string(r.Reason)), Trigger: string(r.Trigger),
		Replica: orNull(r.Replica), Resource: r.Resource, FencingToken: orNull(r.FencingToken), DueAt: r.DueAt.UTC(),
		StartedAt: utcOrNull(r.StartedAt), FinishedAt: utcOrNull(r.FinishedAt), ExitCode: r.ExitCode,
		Signal: orNull(r.Signal), RequestedBy: orNull(r.RequestedBy),
	}
}

func (v runView) name() string { return strconv.FormatInt(v.ID, 10) }

// orNull is nil for the zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func utcOrNull(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}

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
