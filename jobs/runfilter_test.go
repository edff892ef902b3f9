package jobs_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
)

// filteredAt is the instant of the first run of filtered.
func filteredAt() time.Time { return time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC) }

// filtered has six runs, an hour between them, named by their numbers from 1.
func filtered(t *testing.T, db *database.DB) (number map[int64]int) {
	t.Helper()
	number = map[int64]int{}
	outcome := func(o jobs.Outcome) *jobs.Outcome { return &o }
	for i, n := range []jobs.NewRun{
		{Job: "report:daily", State: jobs.StateFinished, Outcome: outcome(jobs.OutcomeFailed), Reason: jobs.ReasonExit, Trigger: jobs.TriggerSchedule},
		{Job: "report:monthly", State: jobs.StateFinished, Outcome: outcome(jobs.OutcomeSucceeded), Trigger: jobs.TriggerManual},
		{Job: "Report", State: jobs.StatePending, Trigger: jobs.TriggerSchedule},
		{Job: "a_b%c", State: jobs.StateFinished, Outcome: outcome(jobs.OutcomeSkipped), Reason: jobs.ReasonOverlap, Trigger: jobs.TriggerSchedule},
		{Job: "aXbYc", State: jobs.StateHeld, Trigger: jobs.TriggerRecovery, Attempt: 2},
		{
			Job: "hook", State: jobs.StatePending, Trigger: jobs.TriggerAfter,
			Follows: jobs.Follows{Kind: jobs.TriggerAfter, Runs: []jobs.Followed{{Job: "x", RunID: 1}}},
		},
	} {
		at := filteredAt().Add(time.Duration(i) * time.Hour)
		n.Occurrence, n.Attempt, n.Resource = jobs.ScheduledOccurrence(at), max(n.Attempt, 1), "db/"+n.Job
		n.Overlap, n.OnLost, n.MaxAttempts, n.ScheduledAt, n.DueAt = jobs.RuleSkip, jobs.OnLostFail, 3, at, at
		number[insertRun(t, db, n).ID] = i + 1
	}
	return number
}

func where(column jobs.RunColumn, exact ...string) jobs.Condition {
	return jobs.Condition{Column: column, Match: jobs.Match{Exact: exact}}
}

func begins(column jobs.RunColumn, prefix ...string) jobs.Condition {
	return jobs.Condition{Column: column, Match: jobs.Match{Prefix: prefix}}
}

func not(c jobs.Condition) jobs.Condition {
	c.Match.Not = true
	return c
}

func TestTheFilterOfRuns(t *testing.T) {
	t.Parallel()
	all := func(c ...jobs.Condition) jobs.RunFilter { return jobs.RunFilter{Where: c} }
	tests := map[string]struct {
		filter jobs.RunFilter
		want   []int
	}{
		"everything":         {jobs.RunFilter{}, []int{6, 5, 4, 3, 2, 1}},
		"one job":            {all(where(jobs.ColumnJob, "report:daily")), []int{1}},
		"two jobs":           {all(where(jobs.ColumnJob, "report:daily", "Report")), []int{3, 1}},
		"prefix, by case":    {all(begins(jobs.ColumnJob, "report")), []int{2, 1}},
		"no pattern":         {all(where(jobs.ColumnJob, "a_b%c")), []int{4}},
		"no pattern, prefix": {all(begins(jobs.ColumnJob, "a_b%")), []int{4}},
		"not":                {all(not(begins(jobs.ColumnJob, "report")), not(where(jobs.ColumnJob, "hook"))), []int{5, 4, 3}},
		"text or prefix": {all(jobs.Condition{
			Column: jobs.ColumnJob, Match: jobs.Match{Exact: []string{"hook"}, Prefix: []string{"report:m"}},
		}), []int{6, 2}},
		"both must hold":         {all(begins(jobs.ColumnJob, "report:"), begins(jobs.ColumnJob, "report:m", "x")), []int{2}},
		"both, one a text":       {all(where(jobs.ColumnJob, "report:daily", "hook"), begins(jobs.ColumnJob, "rep")), []int{1}},
		"both, which is nothing": {all(where(jobs.ColumnJob, "hook"), where(jobs.ColumnJob, "Report")), []int{}},
		"no job has the tag":     {all(jobs.Condition{Column: jobs.ColumnJob, Match: jobs.Match{Exact: []string{}}}), []int{}},
		"state":                  {all(where(jobs.ColumnState, "pending", "held")), []int{6, 5, 3}},
		"no outcome is not one":  {all(not(where(jobs.ColumnOutcome, "failed"))), []int{6, 5, 4, 3, 2}},
		"outcome":                {all(where(jobs.ColumnOutcome, "failed", "skipped")), []int{4, 1}},
		"reason":                 {all(where(jobs.ColumnReason, "overlap")), []int{4}},
		"trigger after":          {all(where(jobs.ColumnTrigger, "after")), []int{6}},
		"trigger schedule":       {all(where(jobs.ColumnTrigger, "schedule")), []int{4, 3, 1}},
		"attempt":                {all(where(jobs.ColumnAttempt, "2")), []int{5}},
		"resource":               {all(begins(jobs.ColumnResource, "db/report:d")), []int{1}},
		"replica":                {all(where(jobs.ColumnReplica, "b")), []int{}},
		"words":                  {jobs.RunFilter{Words: []jobs.WordMatch{{Text: "report"}, {Text: "day", Not: true}}}, []int{2, 1}},
		"not a word":             {jobs.RunFilter{Words: []jobs.WordMatch{{Text: "o", Not: true}}}, []int{5, 4}},
		"no pattern, word":       {jobs.RunFilter{Words: []jobs.WordMatch{{Text: "_b"}}}, []int{4}},
		"fields of their own":    {jobs.RunFilter{Job: "report:daily", State: jobs.StateFinished, Outcome: jobs.OutcomeFailed}, []int{1}},
		"job against another": {
			jobs.RunFilter{Job: "hook", Where: []jobs.Condition{where(jobs.ColumnJob, "Report")}}, []int{},
		},
		"since, included": {jobs.RunFilter{Since: filteredAt().Add(4 * time.Hour)}, []int{6, 5}},
		"until, included": {jobs.RunFilter{Until: filteredAt().Add(time.Hour)}, []int{2, 1}},
		"ago":             {jobs.RunFilter{SinceAgo: time.Hour}, []int{}},
		"since, the later": {jobs.RunFilter{
			SinceAgo: 40 * 365 * 24 * time.Hour, Since: filteredAt().Add(4 * time.Hour),
		}, []int{6, 5}},
		"until, the earlier": {jobs.RunFilter{UntilAgo: time.Hour, Until: filteredAt().Add(time.Hour)}, []int{2, 1}},
		"until ago":          {jobs.RunFilter{UntilAgo: time.Hour}, []int{6, 5, 4, 3, 2, 1}},
		"a job, since": {
			jobs.RunFilter{Job: "report:daily", Since: filteredAt().Add(time.Hour)}, []int{},
		},
	}
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		number := filtered(t, db)
		for name, tt := range tests {
			runs, err := openLedger(t, db).List(t.Context(), tt.filter)
			require.NoError(t, err, name)
			got := []int{}
			for i := range runs {
				got = append(got, number[runs[i].ID])
			}
			if name == "ago" && time.Now().Before(filteredAt().Add(24*time.Hour)) {
				continue // a clock that is set before the runs
			}
			assert.Equal(t, tt.want, got, name)
		}
	})
}

// Pages are whole and have nothing twice, also of one instant, and also when runs are inserted between two of them.
func TestPagesOfRuns(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		l, at := openLedger(t, db), time.Now().Truncate(time.Millisecond).Add(123*time.Microsecond)
		add := func(job, id string, at time.Time) {
			insertRun(t, db, jobs.ManualRun(jobs.TriggerRequest{Job: manualJob(t, job), RequestID: id}, at))
		}
		for i := range 25 {
			add("j", strconv.Itoa(i), at.Add(time.Duration(i/5)*time.Minute)) // five of one instant
		}
		want, err := l.List(t.Context(), jobs.RunFilter{Limit: 100})
		require.NoError(t, err)
		for _, job := range []string{"", "j"} {
			var got []jobs.Run
			f := jobs.RunFilter{Job: job, Limit: 3}
			for page := 0; ; page++ {
				runs, err := l.List(t.Context(), f)
				require.NoError(t, err)
				if len(runs) == 0 {
					break
				}
				got = append(got, runs...)
				f.After = jobs.CursorOf(&runs[len(runs)-1])
				add("j", fmt.Sprint(job, "new", page), at.Add(time.Hour)) // the newest of all, and so on a page that was read
			}
			assert.Equal(t, want, got[:min(len(want), len(got))])
			assert.Len(t, got, len(want))
			_, err := db.Main.NewRaw("DELETE FROM job_runs WHERE occurrence LIKE '%new%'").Exec(t.Context())
			require.NoError(t, err)
		}
	})
}

// A ledger with 100,000 runs is read by its indexes: what is wanted decides how much is looked at.
func TestTheListReadsAnIndex(t *testing.T) {
	t.Parallel()
	fill := map[dialect.Name]string{
		dialect.PG: `INSERT INTO job_runs (job, occurrence, attempt, trigger, scheduled_at, due_at, resource, overlap, on_lost, max_attempts,
			state, outcome, created_at, finished_at)
			SELECT 'job-' || n % 100, 's:' || n, 1, 'schedule', now() - n * interval '1 minute', now(), 'r', 'skip', 'fail', 1,
			'finished', CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'succeeded' END, now(), now() FROM generate_series(1, 100000) AS n`,
		dialect.SQLite: `WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 100000)
			INSERT INTO job_runs (job, occurrence, attempt, trigger, scheduled_at, due_at, resource, overlap, on_lost, max_attempts,
			state, outcome, created_at, finished_at)
			SELECT 'job-' || n % 100, 's:' || n, 1, 'schedule', unixepoch() * 1000 - n * 60000, 0, 'r', 'skip', 'fail', 1,
			'finished', CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'succeeded' END, 0, 0 FROM s`,
	}
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		d := db.Main.Dialect().Name()
		dbtest.Fill(t, db.Main, fill[d])
		dbtest.Fill(t, db.Main, "ANALYZE job_runs")
		for name, tt := range map[string]struct {
			filter jobs.RunFilter
			index  string
		}{
			"no filter":    {jobs.RunFilter{}, "job_runs_recent"},
			"job":          {jobs.RunFilter{Job: "job-7"}, "job_runs_history"},
			"unknown job":  {jobs.RunFilter{Job: "none"}, "job_runs_history"},
			"outcome":      {jobs.RunFilter{Outcome: jobs.OutcomeFailed}, "job_runs_recent"},
			"since":        {jobs.RunFilter{SinceAgo: time.Hour}, "job_runs_recent"},
			"second page":  {jobs.RunFilter{After: jobs.RunCursor{ScheduledAt: time.Now().Add(-24 * time.Hour), ID: math.MaxInt64}}, "job_runs_recent"},
			"job, outcome": {jobs.RunFilter{Job: "job-0", Outcome: jobs.OutcomeFailed}, "job_runs_history"},
		} {
			plan := jobs.ExplainList(t, openLedger(t, db), db.Main, tt.filter)
			assert.Contains(t, plan, tt.index, "%s:\n%s", name, plan)
			assert.NotContains(t, plan, "Seq Scan on job_runs", "%s:\n%s", name, plan)
			if strings.Contains(plan, "Execution Time") {
				t.Log(name, plan[strings.LastIndex(plan, "Execution Time"):])
			}
		}
	})
}
