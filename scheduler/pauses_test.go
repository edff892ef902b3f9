package scheduler

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/jobs"
)

// paused stores a pause; one that is over was resumed then.
func (b *bench) paused(job string, from, until time.Time) {
	_, err := b.db.NewRaw(b.q.addPause, job, "disk", "ops@h", dbtime.Arg(b.d, from), dbtime.Arg(b.d, until)).Exec(b.ctx())
	require.NoError(b.t, err)
	if !until.IsZero() && !until.After(b.clock()) {
		_, err = b.db.NewRaw("UPDATE job_pauses SET resumed_at = until_at WHERE resumed_at IS NULL AND job = ?", job).Exec(b.ctx())
		require.NoError(b.t, err)
	}
}

func (b *bench) pauses() *Pauses { return &Pauses{b.store} }

func (b *bench) mustPause(names ...string) []Paused {
	paused, err := b.pauses().Pause(b.ctx(), PauseRequest{Jobs: names, Reason: "disk", By: "ops@h"})
	require.NoError(b.t, err)
	return paused
}

func (b *bench) mustResume(names ...string) []string {
	resumed, err := b.pauses().Resume(b.ctx(), names, "ops@h")
	require.NoError(b.t, err)
	return resumed
}

func TestAClaimLeavesWhatIsPaused(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		one, two := named("one", nil)(b.t), named("two", nil)(b.t)
		first := b.put(b.due(one, 10*time.Second))[0]
		b.put(b.due(two, 5*time.Second))
		b.mustPause("one")
		won := b.mustClaim(10, "one", "two")
		require.Len(b.t, won, 1)
		assert.Equal(b.t, "two", won[0].run.Job)
		b.mustFinish(won[0], jobs.OutcomeSucceeded)

		b.put(b.due(two, 3*time.Second))
		b.mustPause("")
		assert.Empty(b.t, b.mustClaim(10, "one", "two"))
		assert.Equal(b.t, []string{"one"}, b.mustResume("one", "two"), "two has no pause of its own")
		assert.Empty(b.t, b.mustClaim(10, "one", "two"), "all are paused")
		assert.Equal(b.t, []string{""}, b.mustResume(""))
		assert.Len(b.t, b.mustClaim(10, "one", "two"), 2, "each starts when its pause is over, late but in time")
		assert.Equal(b.t, jobs.StateRunning, b.get(first.ID).State)
	})
}

func TestAPauseEndsByItselfAndCanBeginAgain(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", nil)(b.t)
		b.put(b.due(j, 10*time.Second))
		now := b.clock()
		from, until := dbtime.Arg(b.d, now.Add(-time.Minute)), dbtime.Arg(b.d, now.Add(-time.Second))
		_, err := b.db.NewRaw(b.q.addPause, "j", "", "ops@h", from, until).Exec(b.ctx())
		require.NoError(b.t, err)
		assert.Empty(b.t, b.mustResume("j"), "it has ended by itself")
		active, err := b.pauses().Active(b.ctx())
		require.NoError(b.t, err)
		assert.Empty(b.t, active)
		again := b.mustPause("j")
		assert.False(b.t, again[0].Before, "this is another one")
		assert.Empty(b.t, b.mustClaim(10, "j"))
		pauses, err := b.pausesBetween(b.ctx(), b.db, now.Add(-time.Hour), b.clock())
		require.NoError(b.t, err)
		require.Len(b.t, pauses, 2, "planning knows of both")
		assert.WithinDuration(b.t, now.Add(-time.Second), pauses[0].Until, 2*time.Millisecond)
		b.mustResume("j")
		assert.Len(b.t, b.mustClaim(10, "j"), 1)
	})
}

// A manual run, its retries too, is what somebody asked for; the retry of what the calendar made waits.
func TestManualRunsPassAPause(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		retried := func(j *jobs.Job) { j.Retry = jobs.Retry{Attempts: 2} }
		byHand, calendar := named("by hand", retried)(b.t), named("calendar", retried)(b.t)
		manual := jobs.ManualRun(jobs.TriggerRequest{Job: byHand, RequestID: "k", RequestedBy: "t"}, b.clock())
		b.put(manual, b.due(calendar, 5*time.Second))
		for _, c := range b.mustClaim(10, "by hand", "calendar") {
			b.mustFinish(c, jobs.OutcomeFailed)
		}
		b.mustPause("")
		won := b.mustClaim(10, "by hand", "calendar")
		require.Len(b.t, won, 1)
		assert.Equal(b.t, []any{"by hand", 2}, []any{won[0].run.Job, won[0].run.Attempt})
		b.mustResume("")
		won = b.mustClaim(10, "by hand", "calendar")
		require.Len(b.t, won, 1)
		assert.Equal(b.t, []any{"calendar", 2}, []any{won[0].run.Job, won[0].run.Attempt})
	})
}

// What waits for the end of a pause is no earlier run to wait for, or to be skipped for. Later it waits for the manual one.
func TestAManualRunGoesBeforeWhatIsPaused(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", nil)(b.t)
		waiting, manual := b.due(j, 10*time.Second), jobs.ManualRun(jobs.TriggerRequest{Job: j, RequestID: "k", RequestedBy: "t"}, b.clock())
		waiting.Resource, manual.Resource = "report-2026-04", "report-2026-05" // no lock keeps them apart
		b.mustPause("j")
		b.put(waiting, manual)
		ended, _, err := b.settle(b.ctx())
		require.NoError(b.t, err)
		assert.Empty(b.t, ended, "overlap: skip does not count it")
		won := b.mustClaim(10, "j")
		require.Len(b.t, won, 1)
		assert.Equal(b.t, "m:k", won[0].run.Occurrence)
		b.mustResume("j")
		assert.Empty(b.t, b.mustClaim(10, "j"), "one after the other")
		ended, _, err = b.settle(b.ctx())
		require.NoError(b.t, err)
		assert.Empty(b.t, ended)
		b.mustFinish(won[0], jobs.OutcomeSucceeded)
		won = b.mustClaim(10, "j")
		require.Len(b.t, won, 1)
		assert.Equal(b.t, waiting.Occurrence, won[0].run.Occurrence)
	})
}

func TestWhatIsPausedReplacesNobody(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", func(j *jobs.Job) { j.Overlap = jobs.OverlapReplace })(b.t)
		b.put(b.due(j, 20*time.Second))
		won := b.mustClaim(1, "j")
		require.Len(b.t, won, 1)
		b.mustPause("j")
		b.put(b.due(j, 10*time.Second))
		_, asked, err := b.settle(b.ctx())
		require.NoError(b.t, err)
		assert.False(b.t, asked)
		assert.Empty(b.t, b.get(won[0].run.ID).CancelReason)
		b.mustResume("j")
		_, asked, err = b.settle(b.ctx())
		require.NoError(b.t, err)
		assert.True(b.t, asked, "now it does")
	})
}

func TestMissedInAPause(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		row := func(name string) jobs.NewRun {
			return b.due(named(name, func(j *jobs.Job) { j.StartDeadline = 5 * time.Second })(b.t), time.Minute)
		}
		paused, before, over, manual := row("paused"), row("before"), row("over"), row("manual")
		manual.Occurrence = "m:k"
		b.paused("paused", paused.StartBy, time.Time{}) // exactly at the deadline
		b.paused("before", before.StartBy.Add(time.Millisecond), time.Time{})
		b.paused("over", over.DueAt, over.StartBy)
		b.paused("manual", manual.DueAt, time.Time{})
		b.put(paused, before, over, manual)
		ended, _, err := b.settle(b.ctx())
		require.NoError(b.t, err)
		got := map[string]jobs.Reason{}
		for _, r := range ended {
			assert.Equal(b.t, jobs.OutcomeMissed, r.Outcome)
			got[r.Job] = r.Reason
			if r.Job == "paused" {
				assert.Contains(b.t, string(r.Detail), `"ops@h"`)
			}
		}
		assert.Equal(b.t, map[string]jobs.Reason{
			"paused": jobs.ReasonPaused, "before": jobs.ReasonNoCapacity, "over": jobs.ReasonNoCapacity, "manual": jobs.ReasonNoCapacity,
		}, got)
	})
}

func TestPausingTwiceUpdates(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		first := b.mustPause("j", "")
		assert.Equal(b.t, []bool{false, false}, []bool{first[0].Before, first[1].Before})
		second, err := b.pauses().Pause(b.ctx(), PauseRequest{Jobs: []string{"j"}, Reason: "network", By: "dev@h", For: time.Hour})
		require.NoError(b.t, err)
		assert.True(b.t, second[0].Before)
		active, err := b.pauses().Active(b.ctx())
		require.NoError(b.t, err)
		require.Len(b.t, active, 2)
		assert.Equal(b.t, []string{"", "j"}, []string{active[0].Job, active[1].Job})
		p := active[1]
		assert.Equal(b.t, []string{"network", "dev@h"}, []string{p.Reason, p.By})
		assert.Equal(b.t, first[0].From.UnixMilli(), p.From.UnixMilli(), "it is the same pause")
		assert.WithinDuration(b.t, b.clock().Add(time.Hour), p.Until, time.Minute)

		for _, past := range []time.Time{b.clock().Add(-time.Minute), first[0].From} {
			_, err = b.pauses().Pause(b.ctx(), PauseRequest{Jobs: []string{"k", "j"}, By: "x", Until: past})
			require.ErrorIs(b.t, err, ErrPast)
		}
		still, err := b.pauses().Active(b.ctx())
		require.NoError(b.t, err)
		assert.Equal(b.t, active, still, "nothing was changed")
		assert.Equal(b.t, []string{"j"}, b.mustResume("j", "j", "k"))
		b.audited([]string{"job.pause j ops@h disk", "job.pause  ops@h disk", "job.pause j dev@h network", "job.resume j ops@h network"})
	})
}

// audited compares the audit's rows about pauses.
func (b *bench) audited(want []string) {
	var got []string
	query := `SELECT action || ' ' || job || ' ' || actor_id || ' ' || reason FROM audit_log WHERE actor_type = 'user' ORDER BY id`
	require.NoError(b.t, b.db.NewRaw(query).Scan(b.ctx(), &got))
	assert.Equal(b.t, want, got)
}

// A pause waits for the claims that do not see it, so that nothing starts after it has returned.
func TestAPauseWaitsForClaims(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		if b.q.holdPauses == "" {
			b.t.Skip("a transaction is the only writer here")
		}
		claiming, err := b.db.BeginTx(b.ctx(), nil)
		require.NoError(b.t, err)
		require.NoError(b.t, b.holdPauses(b.ctx(), claiming))
		second, err := b.db.BeginTx(b.ctx(), nil)
		require.NoError(b.t, err)
		require.NoError(b.t, b.holdPauses(b.ctx(), second), "claims do not wait for each other")
		require.NoError(b.t, second.Commit())

		paused := make(chan error, 1)
		go func() {
			_, err := b.pauses().Pause(context.WithoutCancel(b.ctx()), PauseRequest{Jobs: []string{"j"}, By: "x"})
			paused <- err
		}()
		require.Eventually(b.t, func() bool { return b.waiters() == 1 }, patience, 10*time.Millisecond)
		before := b.clock()
		require.NoError(b.t, claiming.Commit())
		require.NoError(b.t, <-paused)
		active, err := b.pauses().Active(b.ctx())
		require.NoError(b.t, err)
		require.Len(b.t, active, 1)
		assert.False(b.t, active[0].From.Before(before), "the pause begins when the claim is over")
	})
}

// waiters is how many sessions wait for an advisory lock.
func (b *bench) waiters() (n int) {
	query := `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	require.NoError(b.t, b.db.NewRaw(query).Scan(b.ctx(), &n))
	return n
}

// Both steps that must see every pause hold the lock.
func TestPlanAndClaimHoldThePauses(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		broken := *b.q
		broken.holdPauses = "SELECT no_such_column"
		s := &store{db: b.db, q: &broken, d: b.d}
		_, _, err := s.claim(b.ctx(), b.request(1, "j"))
		require.ErrorContains(b.t, err, "no_such_column")
		j := named("j", nil)(b.t)
		_, err = s.plan(b.ctx(), []*planned{{job: j, hash: j.Schedule.Hash()}}, planRules{late: time.Hour})
		require.ErrorContains(b.t, err, "no_such_column")
	})
}
