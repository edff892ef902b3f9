package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// retrying tries again at once.
func retrying(attempts int) func(*jobs.Job) {
	return func(j *jobs.Job) {
		j.Retry = jobs.Retry{Attempts: attempts, Backoff: jobs.BackoffConstant, MaxDelay: time.Hour}
	}
}

func TestOutcomesThatAreTriedAgain(t *testing.T) {
	t.Parallel()
	for outcome, again := range map[jobs.Outcome]bool{
		jobs.OutcomeFailed: true, jobs.OutcomeTimedOut: true,
		jobs.OutcomeSucceeded: false, jobs.OutcomeCancelled: false, jobs.OutcomeSkipped: false,
	} {
		t.Run(string(outcome), func(t *testing.T) {
			t.Parallel()
			each(t, func(b *bench) {
				row := b.put(b.due(named("j", retrying(2))(b.t), time.Second))[0]
				c := b.mustClaim(1, "j")[0]
				next := b.mustFinish(c, outcome).next
				if !again {
					assert.Nil(b.t, next)
					return
				}
				require.NotNil(b.t, next)
				assert.Equal(b.t, jobs.TriggerRetry, next.Trigger)
				assert.Equal(b.t, row.Occurrence, next.Occurrence)
				assert.Equal(b.t, row.ScheduledAt, next.ScheduledAt)
				won := b.mustClaim(1, "j")
				require.Len(b.t, won, 1, "any replica may run it")
				assert.Equal(b.t, 2, won[0].run.Attempt)
				assert.Nil(b.t, b.mustFinish(won[0], outcome).next, "attempts is the total")
			})
		})
	}
}

func TestARetryWaitsForItsDelayAndCountsAsUnfinished(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", func(j *jobs.Job) {
			j.Retry = jobs.Retry{Attempts: 3, Delay: time.Hour, Backoff: jobs.BackoffExponential, MaxDelay: 24 * time.Hour}
			j.StartDeadline = time.Minute
		})(b.t)
		b.put(b.due(j, 20*time.Second))
		next := b.mustFinish(b.mustClaim(1, "j")[0], jobs.OutcomeFailed).next
		require.NotNil(b.t, next)
		assert.WithinRange(b.t, next.DueAt, b.clock().Add(53*time.Minute), b.clock().Add(67*time.Minute))
		assert.Equal(b.t, time.Minute, next.StartBy.Sub(next.DueAt))
		assert.Equal(b.t, j.Retry, next.Retry, "the row has the whole policy")

		later := b.put(b.due(j, 10*time.Second))[0]
		ended, _, err := b.settle(b.ctx())
		require.NoError(b.t, err)
		require.Len(b.t, ended, 1)
		assert.Equal(b.t, jobs.ReasonOverlap, b.get(later.ID).Reason)
		assert.Empty(b.t, b.mustClaim(10, "j"), "not before its time")
	})
}

func TestTheNextAttemptIsInsertedOnce(t *testing.T) { // the answer to the first commit was lost
	t.Parallel()
	each(t, func(b *bench) {
		b.put(b.due(named("j", retrying(5))(b.t), time.Second))
		c := b.mustClaim(1, "j")[0]
		b.mustFinish(c, jobs.OutcomeFailed)
		done := b.mustFinish(c, jobs.OutcomeFailed)
		assert.False(b.t, done.late)
		assert.Nil(b.t, done.next)
		assert.Len(b.t, b.runsOf("j"), 2)
	})
}

func (b *bench) runsOf(job string) []jobs.Run {
	l, err := jobs.OpenLedger(b.db)
	require.NoError(b.t, err)
	runs, err := l.List(b.ctx(), jobs.RunFilter{Job: job})
	require.NoError(b.t, err)
	return runs
}

func TestALateFailureIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		b.put(b.due(named("j", retrying(5))(b.t), time.Second))
		c := b.mustClaim(1, "j")[0]
		b.expire(c)
		require.Len(b.t, b.mustRecover(), 1)
		done := b.mustFinish(c, jobs.OutcomeFailed)
		assert.True(b.t, done.late)
		assert.Nil(b.t, done.next)
		assert.Len(b.t, b.runsOf("j"), 1, "on_lost: fail is at most once, whatever retry says")
	})
}

func TestLostAttemptsCount(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", func(j *jobs.Job) { retrying(2)(j); j.OnLost = jobs.OnLostRetry })(b.t)
		b.put(b.due(j, time.Second))
		b.expire(b.mustClaim(1, "j")[0])
		lost := b.mustRecover() // by a replica that has no definitions at all
		require.Len(b.t, lost, 1)
		require.NotNil(b.t, lost[0].next)
		assert.Equal(b.t, j.Retry, lost[0].next.Retry)
		won := b.mustClaim(1, "j")
		require.Len(b.t, won, 1)
		assert.Nil(b.t, b.mustFinish(won[0], jobs.OutcomeFailed).next, "the second of two attempts")
	})
}
