package scheduler

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// tooOld is the max_age of the jobs here, and twice that passes.
const tooOld = time.Hour

func (b *bench) overdueJobs(names ...string) []overdueJob {
	ages := make([]maxAge, len(names))
	for i, name := range names {
		ages[i] = maxAge{Job: name, MaxAge: tooOld.Milliseconds()}
	}
	found, err := b.overdue(b.ctx(), ages, identity{Replica: "a"})
	require.NoError(b.t, err)
	return found
}

// pass moves the ledger and the audit into the past, by far enough.
func (b *bench) pass() {
	b.t.Helper()
	for _, column := range [][2]string{{"job_runs", "created_at"}, {"job_runs", "finished_at"}, {"audit_log", "at"}} {
		query := "UPDATE " + column[0] + " SET " + column[1] + " = " + column[1] + " - ? * interval '1 millisecond'"
		if b.q == &sqliteQueries {
			query = "UPDATE " + column[0] + " SET " + column[1] + " = " + column[1] + " - ?"
		}
		b.exec(query, (2 * tooOld).Milliseconds())
	}
}

func TestAnOverdueJobIsReportedOncePerSuccess(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", nil)(b.t)
		assert.Empty(b.t, b.overdueJobs("j"), "nothing was ever planned")
		b.ended(b.due(j, 50*time.Second), jobs.OutcomeFailed)
		assert.Empty(b.t, b.overdueJobs("j"), "it has an hour from its first run on")
		b.pass()
		never := b.overdueJobs("j", "other")
		require.Len(b.t, never, 1)
		assert.Equal(b.t, "j", never[0].Job)
		assert.False(b.t, never[0].Succeeded)
		assert.Empty(b.t, b.overdueJobs("j"), "once")

		good := b.ended(b.due(j, 40*time.Second), jobs.OutcomeSucceeded)
		assert.Empty(b.t, b.overdueJobs("j"))
		b.ended(b.due(j, 30*time.Second), jobs.OutcomeFailed)
		b.exec("UPDATE audit_log SET at = ?", b.millis(*good.FinishedAt)) // it was reported at the very moment
		b.pass()
		again := b.overdueJobs("j")
		require.Len(b.t, again, 1, "a success begins anew")
		assert.True(b.t, again[0].Succeeded)
		assert.Equal(b.t, good.FinishedAt.Add(-2*tooOld), again[0].Since.UTC(), "a later failure does not make it younger")
		assert.Empty(b.t, b.overdueJobs("j"), "once")

		var rows []string
		require.NoError(b.t, b.db.NewRaw(`SELECT action || ' ' || job || ' ' || outcome || ' ' || reason FROM audit_log ORDER BY id`).Scan(b.ctx(), &rows))
		assert.Equal(b.t, []string{
			"job.overdue j failure there was no success within max_age", "job.overdue j failure the last success is older than max_age",
		}, rows)
	})
}

// The second replica looks while the first one has not committed yet.
func TestTwoReplicasReportAnOverdueJobOnce(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		if b.q.lockOverdue == "" {
			b.t.Skip("a transaction is the only writer here")
		}
		b.ended(b.due(named("j", nil)(b.t), 50*time.Second), jobs.OutcomeFailed)
		b.pass()
		ages := []maxAge{{Job: "j", MaxAge: tooOld.Milliseconds()}}
		first, err := b.db.BeginTx(b.ctx(), nil)
		require.NoError(b.t, err)
		found, err := b.overdueIn(b.ctx(), first, ages, identity{Replica: "a"})
		require.NoError(b.t, err)
		require.Len(b.t, found, 1)
		second := make(chan []overdueJob, 1)
		go func() {
			found, err := b.overdue(context.WithoutCancel(b.ctx()), ages, identity{Replica: "b"})
			assert.NoError(b.t, err)
			second <- found
		}()
		require.Eventually(b.t, func() bool { return b.waiters() == 1 }, patience, 10*time.Millisecond)
		require.NoError(b.t, first.Commit())
		assert.Empty(b.t, <-second)
	})
}

// The loop looks by itself: a job that fails is reported when its max_age has passed, whichever of the replicas sees it.
func TestTheLoopReportsOverdueJobs(t *testing.T) {
	t.Parallel()
	c := policyCase{
		jobs: playing(tenth("late", func(j *jobs.Job) { j.MaxAge = 25 * time.Minute }), tenth("free", nil),
			tenth("off", func(j *jobs.Job) { j.MaxAge, j.Enabled = time.Minute, false })),
		work: func(*jobs.Attempt) work { return work{takes: time.Second, code: 1} },
	}
	synctest.Test(t, func(t *testing.T) {
		s := raise(t, &c)
		s.join("a")
		s.join("b")
		reports := func() []string {
			synctest.Wait()
			var jobs []string
			require.NoError(t, s.db.Main.NewRaw(`SELECT job FROM audit_log WHERE action = 'job.overdue' ORDER BY id`).Scan(t.Context(), &jobs))
			return jobs
		}
		time.Sleep(10*time.Minute + 24*time.Minute) // its first run was planned after 10 minutes
		assert.Empty(t, reports())
		time.Sleep(time.Minute + overdueEvery + maxSleep)
		assert.Equal(t, []string{"late"}, reports())
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"late"}, reports(), "once")
		s.clear()
	})
}
