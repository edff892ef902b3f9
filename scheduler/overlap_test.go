package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func overlapping(o jobs.Overlap) func(*jobs.Job) { return func(j *jobs.Job) { j.Overlap = o } }

func (b *bench) mustSettle() (ended []jobs.Run, asked bool) {
	ended, asked, err := b.settle(b.ctx())
	require.NoError(b.t, err)
	return ended, asked
}

func TestOverlapAllowRunsSideBySide(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", overlapping(jobs.OverlapAllow))(b.t)
		rows := b.put(b.due(j, 30*time.Second), b.due(j, 20*time.Second), b.due(j, 10*time.Second))
		ended, asked := b.mustSettle()
		assert.Empty(b.t, ended)
		assert.False(b.t, asked)
		won := b.mustClaim(10, "j")
		require.Len(b.t, won, 3)
		for i, row := range rows {
			assert.Equal(b.t, jobs.RuleAllow, b.get(row.ID).Overlap)
			assert.Equal(b.t, "j@"+row.Occurrence, row.Resource)
			_, err := b.locks().Get(b.ctx(), rows[i].Resource)
			require.NoError(b.t, err)
		}
		b.mustFinish(won[0], jobs.OutcomeFailed)
	})
}

func TestOverlapReplaceEndsTheEarlierOnes(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", overlapping(jobs.OverlapReplace))(b.t)
		b.put(b.due(j, 40*time.Second))
		old := b.mustClaim(10, "j")
		require.Len(b.t, old, 1)
		other := b.put(b.due(named("other", overlapping(jobs.OverlapReplace))(b.t), 35*time.Second))[0]
		waiting := b.put(b.due(j, 30*time.Second))[0]
		newest := b.put(b.due(j, 20*time.Second))[0]
		later := b.put(j.ScheduledRun(b.clock().Add(time.Hour).Truncate(time.Second)))[0]

		ended, asked := b.mustSettle()
		assert.True(b.t, asked)
		require.Len(b.t, ended, 1, "what is not due yet replaces nobody")
		assert.Equal(b.t, waiting.ID, ended[0].ID)
		assert.Equal(b.t, jobs.OutcomeCancelled, ended[0].Outcome)
		assert.Equal(b.t, jobs.ReasonReplaced, ended[0].Reason)
		assert.JSONEq(b.t, fmt.Sprintf(`{"replaced_by": %d}`, newest.ID), string(ended[0].Detail))
		assert.Equal(b.t, jobs.StatePending, b.get(other.ID).State, "another job")
		assert.Equal(b.t, jobs.StatePending, b.get(later.ID).State)

		requests, err := b.cancelling(b.ctx())
		require.NoError(b.t, err)
		require.Len(b.t, requests, 1)
		assert.Equal(b.t, old[0].run.ID, requests[0].ID)
		assert.Equal(b.t, jobs.ReasonReplaced, requests[0].CancelReason)
		_, asked = b.mustSettle()
		assert.False(b.t, asked, "once is enough")

		won := b.mustClaim(10, "j", "other")
		require.Len(b.t, won, 1, "the new one waits until the old tree is dead")
		assert.Equal(b.t, other.ID, won[0].run.ID)
		b.mustFinish(old[0], jobs.OutcomeCancelled)
		won = b.mustClaim(10, "j")
		require.Len(b.t, won, 1)
		assert.Equal(b.t, newest.ID, won[0].run.ID)
		requests, err = b.cancelling(b.ctx())
		require.NoError(b.t, err)
		assert.Empty(b.t, requests)
	})
}

func TestWhatWasReplacedIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *bench, c claimed) *jobs.Run{
		"failed": func(b *bench, c claimed) *jobs.Run { return b.mustFinish(c, jobs.OutcomeFailed).next },
		"lost": func(b *bench, c claimed) *jobs.Run {
			b.expire(c)
			return b.mustRecover()[0].next
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(b *bench) {
				j := named("j", func(j *jobs.Job) {
					j.Overlap, j.OnLost = jobs.OverlapReplace, jobs.OnLostRetry
					retrying(3)(j)
				})(b.t)
				b.put(b.due(j, 40*time.Second))
				old := b.mustClaim(10, "j")[0]
				b.put(b.due(j, 30*time.Second))
				_, asked := b.mustSettle()
				require.True(b.t, asked)
				assert.Nil(b.t, end(b, old))
			})
		})
	}
}

func TestAWaitingRetryIsReplaced(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", func(j *jobs.Job) {
			j.Overlap = jobs.OverlapReplace
			j.Retry = jobs.Retry{Attempts: 3, Delay: time.Hour, MaxDelay: time.Hour}
		})(b.t)
		b.put(b.due(j, 40*time.Second))
		retry := b.mustFinish(b.mustClaim(1, "j")[0], jobs.OutcomeFailed).next
		newest := b.put(b.due(j, 30*time.Second))[0]
		ended, _ := b.mustSettle()
		require.Len(b.t, ended, 1)
		assert.Equal(b.t, retry.ID, ended[0].ID)
		won := b.mustClaim(1, "j")
		require.Len(b.t, won, 1)
		assert.Equal(b.t, newest.ID, won[0].run.ID)
	})
}

func TestAHeldRunIsNotReplaced(t *testing.T) { // a person decides about it
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", func(j *jobs.Job) { j.Overlap, j.OnLost = jobs.OverlapReplace, jobs.OnLostHold })(b.t)
		b.put(b.due(j, 40*time.Second))
		b.expire(b.mustClaim(1, "j")[0])
		held := b.mustRecover()[0].next
		b.put(b.due(j, 30*time.Second))
		ended, asked := b.mustSettle()
		assert.Empty(b.t, ended)
		assert.False(b.t, asked)
		assert.Empty(b.t, b.mustClaim(1, "j"))
		assert.Equal(b.t, jobs.StateHeld, b.get(held.ID).State)
	})
}

// What is too late to start must not end a run that works.
func TestAnExpiredRunReplacesNobody(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", func(j *jobs.Job) { j.Overlap, j.StartDeadline = jobs.OverlapReplace, 0 })(b.t)
		b.put(b.due(j, 40*time.Second))
		require.Len(b.t, b.mustClaim(1, "j"), 1)
		j.StartDeadline = time.Second
		late := b.put(b.due(j, 30*time.Second))[0]
		ended, asked := b.mustSettle()
		assert.False(b.t, asked)
		require.Len(b.t, ended, 1)
		assert.Equal(b.t, late.ID, ended[0].ID)
		assert.Equal(b.t, jobs.OutcomeMissed, ended[0].Outcome)
		assert.Equal(b.t, jobs.ReasonOverlap, ended[0].Reason)
	})
}
