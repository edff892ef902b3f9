package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// A crash at any statement of finish leaves the run as it was: running, with its lock, and to be finished again.
func TestFinishIsOneTransactionWithWhatFollows(t *testing.T) {
	t.Parallel()
	const crash = "SELECT no_such_column FROM job_runs"
	for name, tt := range map[string]struct {
		outcome jobs.Outcome
		at      func(q *queries)
	}{
		"at the next attempt": {jobs.OutcomeFailed, func(q *queries) { q.insertRuns = crash + " WHERE ? = ''" }},
		"at the marker":       {jobs.OutcomeSucceeded, func(q *queries) { q.addMarker = crash + " WHERE id = ?" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(b *bench) {
				j := named("j", func(j *jobs.Job) { retrying(2)(j); oncePerResource(j) })(b.t)
				b.put(b.due(j, time.Second))
				c := b.mustClaim(1, "j")[0]
				broken := *b.q
				tt.at(&broken)
				_, err := (&store{db: b.db, q: &broken, d: b.d}).finish(b.ctx(), &report{run: c.run, outcome: tt.outcome})
				require.Error(b.t, err)
				assert.Equal(b.t, jobs.StateRunning, b.get(c.run.ID).State)
				lock, err := b.locks().Get(b.ctx(), "j")
				require.NoError(b.t, err)
				assert.Equal(b.t, c.run.FencingToken, lock.FencingToken)
				assert.Len(b.t, b.runsOf("j"), 1)

				b.mustFinish(c, tt.outcome)
				assert.Equal(b.t, tt.outcome, b.get(c.run.ID).Outcome)
			})
		})
	}
}

// Waiting runs are cancelled and the running one is asked together or not at all.
func TestReplaceIsOneTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", overlapping(jobs.OverlapReplace))(b.t)
		b.put(b.due(j, 40*time.Second))
		running := b.mustClaim(1, "j")[0]
		waiting := b.put(b.due(j, 30*time.Second), b.due(j, 20*time.Second))[0]
		broken := *b.q
		broken.askToEnd = "SELECT no_such_column FROM job_runs WHERE ? = ''"
		_, asked, err := (&store{db: b.db, q: &broken, d: b.d}).settle(b.ctx())
		require.Error(b.t, err)
		assert.False(b.t, asked)
		assert.Equal(b.t, jobs.StatePending, b.get(waiting.ID).State)
		assert.Empty(b.t, b.get(running.run.ID).CancelReason)
	})
}
