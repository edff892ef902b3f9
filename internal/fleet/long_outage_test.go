package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/jobs"
)

// onTime is how late a run may be on a busy machine without being late because of the outage.
const onTime = 10 * time.Second

// outageFacts are what a row says about the outage that it belongs to.
type outageFacts struct {
	PlannedAt   time.Time `json:"planned_at"`
	CatchUp     string    `json:"catch_up"`
	Window      string    `json:"window"`
	From        time.Time `json:"unplanned_from"`
	Until       time.Time `json:"unplanned_until"`
	NobodyFrom  time.Time `json:"nobody_from"`
	NobodyUntil time.Time `json:"nobody_until"`
	MissedFrom  time.Time `json:"missed_from"`
	MissedUntil time.Time `json:"missed_until"`
	MissedCount int       `json:"missed_count"`
}

func outageOf(t *testing.T, r *jobs.Run) outageFacts {
	t.Helper()
	var facts outageFacts
	require.NoError(t, json.Unmarshal(r.Detail, &facts), describe(r))
	return facts
}

// absence is a time in which no daemon was up.
type absence struct {
	job      Job      // the only one
	keys     []string // its further keys, as lines of YAML
	away     time.Duration
	position func(f *Fleet) time.Time // up to where the job was planned; asked at the end of the absence
}

// returned is a fleet of three that comes back after an absence.
func returned(t *testing.T, url string, a absence) *Fleet {
	t.Helper()
	f := threeWith(t, url, "", []Job{a.job}, a.keys...)
	until(t, "the schedule has a position", patience, func() bool {
		var n int
		f.must(f.DB.Main.NewRaw(`SELECT count(*) FROM plan_positions`).Scan(t.Context(), &n))
		return n == 1
	})
	f.LeaveAll()
	f.pretend(a)
	for _, name := range []string{"d", "e", "f"} {
		f.Start(name)
	}
	return f
}

// pretend moves what the database knows back in time.
func (f *Fleet) pretend(a absence) {
	f.tb.Helper()
	back := "- ? * interval '1 millisecond'"
	if f.DB.Kind == database.SQLite {
		back = "- ?"
	}
	ms := a.away.Milliseconds()
	f.exec(fmt.Sprintf(`UPDATE replicas SET joined_at = joined_at %[1]s, seen_at = seen_at %[1]s, left_at = left_at %[1]s`, back), ms, ms, ms)
	f.exec(`UPDATE plan_positions SET position = ?`, dbtime.Arg(f.DB.Main.Dialect().Name(), a.position(f)))
	// What was done in the moment in which they were up is not part of the story.
	f.exec(`DELETE FROM job_runs`)
	f.must(os.RemoveAll(filepath.Join(f.dir, "events")))
}

func (f *Fleet) exec(statement string, args ...any) {
	f.tb.Helper()
	_, err := f.DB.Main.NewRaw(statement, args...).Exec(f.tb.Context())
	f.must(err)
}

// P6: no replica for ten hours under a job of every minute. Of the 600 instants the newest 100 run, one after another on
// whichever replica; the others are missed, each with its facts; and the next one is on time.
func TestTenHoursWithoutReplicas(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		const away, instants, most = 10 * time.Hour, 600, 100
		next := time.Now().UTC().Truncate(time.Second).Add(50 * time.Second)
		job := Job{Name: "job", Schedule: fmt.Sprintf("%d * * * * *", next.Second())}
		f := returned(t, url, absence{
			job: job, keys: []string{"catch_up: {policy: all, window: 12h, max: 100}"}, away: away,
			position: func(f *Fleet) time.Time {
				for next.Sub(f.now()) < 30*time.Second { // too near: what is caught up comes first, and takes its time
					until(t, "that instant is over", patience, func() bool { return f.now().After(next) })
					next = next.Add(time.Minute)
				}
				return next.Add(-time.Minute - away)
			},
		})
		position := next.Add(-time.Minute - away)
		until(t, "the next occurrence has run", patience+2*time.Minute, func() bool {
			return slices.ContainsFunc(f.Runs(), func(r jobs.Run) bool {
				return r.Trigger == jobs.TriggerSchedule && r.Outcome == jobs.OutcomeSucceeded
			})
		})
		h := f.Rest()
		require.NoError(t, check.Calendar(h.Runs, schedules([]Job{job}), check.Window{From: position.Add(time.Second), Until: next}))
		runs := h.of("job")
		slices.SortFunc(runs, func(a, b jobs.Run) int { return a.ScheduledAt.Compare(b.ScheduledAt) })
		require.Greater(t, len(runs), instants)
		for i := range runs[:instants-most] {
			missedInOutage(t, &runs[i], position, next)
		}
		caughtUp(t, runs[instants-most:instants])
		last := runs[instants-1].FinishedAt
		assert.True(t, next.Equal(runs[instants].ScheduledAt), describe(&runs[instants]))
		onTimeAfter(t, runs[instants:], *last)
		t.Logf("%d missed, %d caught up in %s, by replica: %v", instants-most, most, last.Sub(*runs[instants-most].StartedAt), check.PerReplica(h.Runs))
	})
}

// onTimeAfter: the first occurrence after what was caught up has run on time. On a machine so slow that an earlier one fell due
// before that, it was skipped by overlap.
func onTimeAfter(t *testing.T, runs []jobs.Run, caughtUp time.Time) {
	t.Helper()
	first := slices.IndexFunc(runs, func(r jobs.Run) bool { return r.Reason != jobs.ReasonOverlap })
	require.NotEqual(t, -1, first)
	for i := range runs[:first] {
		assert.False(t, runs[i].ScheduledAt.After(caughtUp.Add(time.Second)), describe(&runs[i]))
	}
	normal := &runs[first]
	require.Equal(t, jobs.OutcomeSucceeded, normal.Outcome, describe(normal))
	assert.Less(t, normal.StartedAt.Sub(normal.ScheduledAt), onTime, describe(normal))
}

func missedInOutage(t *testing.T, r *jobs.Run, position, next time.Time) {
	t.Helper()
	require.Equal(t, jobs.OutcomeMissed, r.Outcome, describe(r))
	require.Equal(t, jobs.ReasonNoReplica, r.Reason, describe(r))
	facts := outageOf(t, r)
	assert.Equal(t, "all 12h0m0s", facts.CatchUp+" "+facts.Window)
	assert.True(t, facts.From.Equal(position.Add(time.Minute)), describe(r))
	assert.True(t, facts.Until.Equal(next.Add(-time.Minute)), describe(r))
	assert.True(t, facts.PlannedAt.Before(next), describe(r))
	assert.True(t, facts.NobodyFrom.Before(facts.From) && facts.NobodyUntil.After(facts.Until), describe(r))
	assert.Less(t, facts.NobodyUntil.Sub(facts.NobodyFrom), 10*time.Hour+2*time.Minute)
}

// caughtUp: they have run in their order, and never two at a time.
func caughtUp(t *testing.T, runs []jobs.Run) {
	t.Helper()
	for i := range runs {
		r := &runs[i]
		require.Equal(t, jobs.OutcomeSucceeded, r.Outcome, describe(r))
		require.Equal(t, jobs.TriggerCatchUp, r.Trigger, describe(r))
		require.Equal(t, 1, r.Attempt, describe(r))
		if i > 0 {
			assert.False(t, r.StartedAt.Before(*runs[i-1].FinishedAt), "%s\nstarted before the end of\n%s", describe(r), describe(&runs[i-1]))
		}
	}
}

// P6: three days of a job of every second are 259,200 instants: they become at most 1,000 rows and one that counts the
// others. Nothing of that stands in the way of what falls due now.
func TestThreeDaysOfSecondsAreCounted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		const away = 3 * 24 * time.Hour
		job := Job{Name: "job", Schedule: everySecond}
		var position time.Time
		f := returned(t, url, absence{job: job, away: away, position: func(f *Fleet) time.Time {
			position = f.now().Truncate(time.Second).Add(-away)
			return position
		}})
		until(t, "several later occurrences have run", patience+time.Minute, func() bool {
			return len(slices.DeleteFunc(f.Runs(), func(r jobs.Run) bool {
				return r.Trigger != jobs.TriggerSchedule || r.Outcome != jobs.OutcomeSucceeded
			})) >= 5
		})
		h := f.Rest()
		runs := h.of("job")
		slices.SortFunc(runs, func(a, b jobs.Run) int { return a.ScheduledAt.Compare(b.ScheduledAt) })
		first := &runs[0]
		summary := outageOf(t, first)
		singles := 0
		for i := range runs[1:] {
			r := &runs[i+1]
			if r.Outcome != jobs.OutcomeMissed {
				continue
			}
			assert.Zero(t, outageOf(t, r).MissedCount, "a second summary: %s", describe(r))
			if !r.ScheduledAt.After(summary.Until) { // a later one is a machine that stood still for a TTL
				singles++
			}
		}
		require.Equal(t, jobs.ReasonNoReplica, first.Reason)
		assert.True(t, summary.MissedFrom.Equal(position.Add(time.Second)) && summary.From.Equal(summary.MissedFrom), describe(first))
		assert.Equal(t, 1000, singles)
		assert.Equal(t, int(summary.MissedUntil.Sub(position)/time.Second), summary.MissedCount)
		// From the first one that has a row of its own on, the ledger is the calendar: what was missed, one that is caught up,
		// and everything since.
		own := runs[1:]
		assert.True(t, own[0].ScheduledAt.Equal(summary.MissedUntil.Add(time.Second)), describe(&own[0]))
		require.NoError(t, check.Calendar(own, schedules([]Job{job}), check.Window{}))
		i, _ := slices.BinarySearchFunc(own, summary.Until, func(r jobs.Run, at time.Time) int {
			return cmp.Compare(r.ScheduledAt.Unix(), at.Unix())
		})
		assert.Equal(t, jobs.TriggerCatchUp, own[i].Trigger, "the newest: %s", describe(&own[i]))
		t.Logf("%d counted in one row, %d rows of their own, planned in one go at %s", summary.MissedCount, singles, summary.PlannedAt)
	})
}
