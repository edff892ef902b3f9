package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/jobs"
)

// insertedBefore is a row as a replica of the version before the policies writes it.
const insertedBefore = `
INSERT INTO job_runs (job, occurrence, attempt, trigger, scheduled_at, due_at, resource, overlap, on_lost, max_attempts, state, created_at)
VALUES ('j', ?, 1, 'schedule', ?, ?, 'j', ?, 'fail', 1, 'pending', ?)`

func (b *bench) putBefore(at time.Time, overlap jobs.OverlapRule) {
	arg := dbtime.Arg(b.d, at)
	_, err := b.db.NewRaw(insertedBefore, jobs.ScheduledOccurrence(at), arg, arg, overlap, arg).Exec(b.ctx())
	require.NoError(b.t, err)
}

func TestRowsOfTheVersionBeforeMeanWhatTheyMeant(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		now := b.clock().Truncate(time.Second)
		b.putBefore(now.Add(-40*time.Second), jobs.RuleSkip)
		won := b.mustClaim(10, "j")
		require.Len(b.t, won, 1)
		assert.Equal(b.t, jobs.Retry{}, won[0].run.Retry)
		assert.Nil(b.t, won[0].run.Limits)
		assert.Empty(b.t, won[0].run.OncePer)

		b.putBefore(now.Add(-30*time.Second), jobs.RuleSkip)
		ended, asked := b.mustSettle()
		assert.False(b.t, asked)
		require.Len(b.t, ended, 1)
		assert.Equal(b.t, jobs.ReasonOverlap, ended[0].Reason)
		assert.Nil(b.t, b.mustFinish(won[0], jobs.OutcomeFailed).next, "no policy, no retry")
	})
}

// What an older replica reads of a newer one's row: a rule that it knows.
func TestOlderReplicasLetNewRulesWait(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		for _, o := range []jobs.Overlap{jobs.OverlapReplace, jobs.OverlapAllow, jobs.OverlapQueue} {
			row := b.put(b.due(named(string(o), overlapping(o))(b.t), time.Second))[0]
			assert.Equal(b.t, jobs.OverlapRule(o), row.Overlap)
			var stored []string
			require.NoError(b.t, b.db.NewRaw(`SELECT overlap FROM job_runs WHERE id = ?`, row.ID).Scan(b.ctx(), &stored))
			want := "wait"
			if o == jobs.OverlapQueue {
				want = "queue"
			}
			assert.Equal(b.t, []string{want}, stored)
		}
	})
}
