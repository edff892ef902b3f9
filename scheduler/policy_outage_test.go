package scheduler

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// A few instants more than one plan takes: each piece is one row that counts, only the newest missed ones of all have a row
// each, and catch_up chooses as if there were no pieces.
func TestPolicyVeryLongOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const away, most = (maxInstants + 300) * time.Second, 5
		job := timed(named("job", func(j *jobs.Job) {
			j.CatchUp = jobs.CatchUp{Policy: jobs.CatchUpAll, Window: time.Hour, Max: most}
		}), "* * * * * *", jobs.ScheduleOptions{Seconds: true})
		s := raise(t, &policyCase{jobs: playing(job), work: takes(50 * time.Millisecond)})
		s.join("a")
		time.Sleep(500 * time.Millisecond)
		s.leaves("a")
		time.Sleep(away)
		s.join("b")
		time.Sleep(10 * time.Second)
		synctest.Wait()

		ledger, err := jobs.OpenLedger(s.db.Main)
		require.NoError(t, err)
		runs, err := ledger.List(t.Context(), jobs.RunFilter{Limit: 10_000})
		require.NoError(t, err)
		next := s.began.Add(time.Second) // each instant has its place in a row, and no other one
		summaries, singles, triggers := 0, 0, map[jobs.Trigger]int{}
		slices.SortFunc(runs, func(a, b jobs.Run) int { return a.ScheduledAt.Compare(b.ScheduledAt) })
		for i := range runs {
			r := &runs[i]
			require.True(t, next.Equal(r.ScheduledAt), "%s, not %s", r.ScheduledAt, next)
			var facts struct {
				Count int       `json:"missed_count"`
				Until time.Time `json:"missed_until"`
			}
			require.NoError(t, json.Unmarshal(r.Detail, &facts))
			next = next.Add(time.Second)
			switch {
			case facts.Count > 0:
				summaries++
				next = r.ScheduledAt.Add(time.Duration(facts.Count) * time.Second)
				assert.True(t, facts.Until.Add(time.Second).Equal(next))
			case r.Outcome == jobs.OutcomeMissed:
				singles++
			default:
				assert.Equal(t, jobs.OutcomeSucceeded, r.Outcome)
				triggers[r.Trigger]++
			}
		}
		assert.Equal(t, 2, summaries)
		assert.Equal(t, maxMissedRows, singles)
		assert.Equal(t, map[jobs.Trigger]int{jobs.TriggerCatchUp: most, jobs.TriggerSchedule: 10}, triggers)
		s.clear()
	})
}
