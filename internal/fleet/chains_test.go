package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/jobs"
)

// chained is extract -> transform, both transform and audit -> report, and flaky, which fails every other second, with a
// hook. Each run has a resource of its own, so that none is skipped because of the one before.
func chained(schedule string) []Job {
	list := []Job{
		{Name: "extract", Schedule: schedule},
		{
			Name: "transform", Keys: []string{"after: {job: extract}"},
			Command: script(`test "$CRONLATCH_AFTER_JOB $CRONLATCH_AFTER_OUTCOME" = "extract succeeded"`),
		},
		{Name: "audit", Schedule: schedule},
		{
			Name: "report", Keys: []string{"after: [{job: transform, on: success}, {job: audit}]"},
			Command: script(`test "$CRONLATCH_AFTER_JOB $CRONLATCH_AFTER_OUTCOME" = "transform,audit succeeded,succeeded"`),
		},
		{
			Name: "flaky", Schedule: schedule, Command: script(`case "$CRONLATCH_SCHEDULED_AT" in *[13579]Z) exit 1; esac`),
			Keys: []string{"on_failure: {command: " + flow(script("true")) + "}"},
		},
		{Name: "despite", Keys: []string{"after: {job: flaky}"}},
		{Name: "at-the-end", Keys: []string{"after: {job: despite, on: always}"}},
	}
	for i := range list {
		list[i].Overlap = "allow"
	}
	return list
}

// longDrain is enough for everything that runs to come to its end: what is stopped in the middle of a chain is no success.
const longDrain = 30 * time.Second

// Whichever replica ends a run and whichever looks: each occurrence has one row after it, and what it asks for ran once.
func TestChainsOnAnyReplica(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		f := New(t, url, Settings{Drain: longDrain, Jobs: chained(everySecond)})
		for _, name := range []string{"a", "b", "c"} {
			f.StartReady(name)
		}
		w := f.watch(10 * time.Second)
		f.LeaveAll()
		f.Configure(Settings{Drain: longDrain, Jobs: chained("0 0 0 1 1 *")}) // a job without a schedule could not be waited for
		f.StartReady("rest")
		until(t, "nothing is left to follow", 2*patience, func() bool { return f.count(`follow OR state <> 'finished'`) == 0 })
		f.waitForRest()
		f.locksAreFree()
		f.LeaveAll()
		h := History{f.Runs(), f.Events()}
		f.judge(h)
		for _, job := range []string{"extract", "audit", "flaky"} {
			require.NoError(t, check.Calendar(h.of(job), map[string]string{job: everySecond}, w))
		}
		mostly(t, h.Runs)

		rows := h.byOccurrence()
		for _, l := range []link{
			{"transform", jobs.AfterSuccess, []string{"extract"}},
			{"report", jobs.AfterSuccess, []string{"transform", "audit"}},
			{"despite", jobs.AfterSuccess, []string{"flaky"}},
			{"at-the-end", jobs.AfterAlways, []string{"despite"}},
		} {
			followed, skipped := l.check(t, rows)
			t.Logf("%s: %d followed, %d skipped", l.job, followed, skipped)
			assert.Greater(t, followed, 2, l.job)
			assert.Equal(t, l.job == "despite" || l.job == "at-the-end", skipped > 2, l.job)
		}
		for occurrence, flaky := range rows["flaky"] {
			hook, ok := rows["flaky#on_failure"][occurrence]
			assert.Equal(t, flaky.Outcome == jobs.OutcomeFailed, ok, "a hook has a row when it is asked for")
			if ok {
				assert.Equal(t, jobs.OutcomeSucceeded, hook.Outcome)
				assert.Equal(t, jobs.TriggerOnFailure, hook.Trigger)
			}
		}
	})
}

// byOccurrence is the ledger by job and occurrence; every run has one attempt.
func (h History) byOccurrence() map[string]map[string]jobs.Run {
	rows := map[string]map[string]jobs.Run{}
	for _, r := range h.Runs {
		if rows[r.Job] == nil {
			rows[r.Job] = map[string]jobs.Run{}
		}
		rows[r.Job][r.Occurrence] = r
	}
	return rows
}

// link is a job of the chain, and what it waits for.
type link struct {
	job   string
	on    jobs.AfterOn
	after []string
}

// check looks for the row after each occurrence that all upstream jobs have, and counts those that ran and those that were
// skipped.
func (l link) check(t *testing.T, rows map[string]map[string]jobs.Run) (followed, skipped int) {
	t.Helper()
	for occurrence := range rows[l.after[0]] {
		var runs []jobs.Followed
		met := true
		for _, job := range l.after {
			if up, ok := rows[job][occurrence]; ok {
				runs = append(runs, jobs.Followed{Job: job, RunID: up.ID, Outcome: up.Outcome, Reason: up.Reason})
				met = met && l.on.Met(up.Outcome)
			}
		}
		if len(runs) < len(l.after) {
			continue // planned by one of the two schedules only, at the beginning or at the end
		}
		row := rows[l.job][occurrence]
		assert.Equal(t, jobs.Follows{Kind: jobs.TriggerAfter, Runs: runs}, row.Follows, "%s %s", l.job, occurrence)
		if met {
			followed++
			assert.Equal(t, jobs.OutcomeSucceeded, row.Outcome, "%s %s", l.job, occurrence)
		} else {
			skipped++
			assert.Equal(t, jobs.ReasonUpstream, row.Reason, "%s %s", l.job, occurrence)
		}
	}
	return followed, skipped
}
