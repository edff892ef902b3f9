package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func oncePerResource(j *jobs.Job) { j.OncePer = jobs.OncePerResource }

func TestOncePerResource(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("report", oncePerResource)(b.t)
		b.put(b.due(j, 50*time.Second))
		b.mustFinish(b.mustClaim(1, "report")[0], jobs.OutcomeFailed)
		second := b.put(b.due(j, 40*time.Second))[0]
		ended, _ := b.mustSettle()
		require.Empty(b.t, ended, "only a success counts")
		b.mustFinish(b.mustClaim(1, "report")[0], jobs.OutcomeSucceeded)

		third := b.put(b.due(j, 30*time.Second))[0]
		assert.Empty(b.t, b.mustClaim(1, "report"), "not claimed, even if nobody has settled it yet")
		ended, _ = b.mustSettle()
		require.Len(b.t, ended, 1)
		assert.Equal(b.t, third.ID, ended[0].ID)
		assert.Equal(b.t, jobs.OutcomeSkipped, ended[0].Outcome)
		assert.Equal(b.t, jobs.ReasonOncePer, ended[0].Reason)
		assert.JSONEq(b.t, fmt.Sprintf(`{"succeeded_run": %d}`, second.ID), string(ended[0].Detail))

		other := b.due(j, 20*time.Second)
		other.Resource = "report-of-june"
		b.put(other)
		assert.Len(b.t, b.mustClaim(1, "report"), 1, "another resource")

		twin := named("twin", func(j *jobs.Job) { oncePerResource(j); j.Resource = named("report", nil)(b.t).Resource })(b.t)
		b.put(b.due(twin, 20*time.Second))
		assert.Len(b.t, b.mustClaim(1, "twin"), 1, "another job with the same resource")
	})
}

func TestAManualRunIsNoOccurrence(t *testing.T) { // whoever asks gets a run, and its success counts
	t.Parallel()
	each(t, func(b *bench) {
		j := named("report", oncePerResource)(b.t)
		for _, id := range []string{"one", "two"} {
			b.start(j, id)
			ended, _ := b.mustSettle()
			require.Empty(b.t, ended)
			won := b.mustClaim(1, "report")
			require.Len(b.t, won, 1, id)
			b.mustFinish(won[0], jobs.OutcomeSucceeded)
		}
		b.put(b.due(j, 30*time.Second))
		ended, _ := b.mustSettle()
		require.Len(b.t, ended, 1)
		assert.Equal(b.t, jobs.ReasonOncePer, ended[0].Reason)
	})
}

// The success of another run may be committed after the candidates were read and before their lock is granted.
func TestASuccessInTheMiddleOfAClaim(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("report", oncePerResource)(b.t)
		b.put(b.due(j, 50*time.Second))
		b.mustFinish(b.mustClaim(1, "report")[0], jobs.OutcomeSucceeded)
		late := b.put(b.due(j, 40*time.Second))[0]

		blind := *b.q // the candidates as they were before the marker
		blind.candidates = fmt.Sprintf("SELECT %s FROM job_runs AS r WHERE r.id = %d AND ? <> '' AND ? <> '' AND ? > 0", jobs.RunColumns, late.ID)
		won, _, err := (&store{db: b.db, q: &blind, d: b.d}).claim(b.ctx(), b.request(1, "report"))
		require.NoError(b.t, err)
		assert.Empty(b.t, won)
		assert.Equal(b.t, jobs.StatePending, b.get(late.ID).State)
		b.acquire("report", "somebody") // its lock was given back
	})
}
