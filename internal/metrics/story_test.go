package metrics_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// good runs 90 s of every two minutes, bad fails and is repeated once, long runs into itself, and broken cannot start.
func story(t *testing.T) *replica {
	t.Helper()
	known := []*jobs.Job{
		job(t, "good", "*/2 * * * *", func(j *jobs.Job) { j.MaxAge = time.Hour }),
		job(t, "bad", "*/5 * * * *", func(j *jobs.Job) { j.Retry = jobs.Retry{Attempts: 2, Delay: 30 * time.Second} }),
		job(t, "long", "* * * * *", nil),
		job(t, "broken", "7 * * * *", nil),
		job(t, "by hand", "", nil),
	}
	return raise(t, known, func(a *jobs.Attempt) (time.Duration, jobs.Result) {
		switch a.Job.Name {
		case "good":
			return 90 * time.Second, exited(0)
		case "bad":
			return 2 * time.Second, exited(1)
		case "long":
			return 150 * time.Second, exited(0)
		default:
			return 0, jobs.Result{}
		}
	})
}

func TestCountersOfAStory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := story(t)
		r.until(10*time.Minute + 5*time.Second) // good runs since 10:00, bad waits to be repeated, long runs since 10:00
		synctest.Wait()
		assert.Equal(t, []string{
			`runs_total{job_name="bad",outcome="failed",trigger="retry"} 1`,
			`runs_total{job_name="bad",outcome="failed",trigger="schedule"} 2`,
			`runs_total{job_name="broken",outcome="failed",trigger="schedule"} 1`,
			`runs_total{job_name="good",outcome="succeeded",trigger="schedule"} 4`,
			`runs_total{job_name="long",outcome="skipped",trigger="schedule"} 6`,
			`runs_total{job_name="long",outcome="succeeded",trigger="schedule"} 3`,
		}, samples(t, r.m, "runs_total"))
		assert.Equal(t, []string{
			`run_duration_seconds_sum{job_name="bad"} 6`, `run_duration_seconds_count{job_name="bad"} 3`,
			`run_duration_seconds_sum{job_name="good"} 360`, `run_duration_seconds_count{job_name="good"} 4`,
			`run_duration_seconds_sum{job_name="long"} 450`, `run_duration_seconds_count{job_name="long"} 3`,
		}, samples(t, r.m, "run_duration_seconds_count", "run_duration_seconds_sum"), "what could not be started took no time")
		assert.Equal(t, []string{
			`run_start_delay_seconds_count{job_name="bad"} 3`, `run_start_delay_seconds_count{job_name="broken"} 1`,
			`run_start_delay_seconds_count{job_name="good"} 5`, `run_start_delay_seconds_count{job_name="long"} 4`,
		}, samples(t, r.m, "run_start_delay_seconds_count"))
		assert.Equal(t, []string{`runs_active{job_name="good"} 1`, `runs_active{job_name="long"} 1`}, samples(t, r.m, "runs_active"))
		assert.Equal(t, []string{`lock_acquisitions_total{result="acquired"} 13`, `lock_hold_seconds_count 11`, `locks_held 2`},
			samples(t, r.m, "locks_held", "lock_acquisitions_total", "lock_hold_seconds_count", "lock_lost_total", "lock_takeovers_total"))
		r.leave()
	})
}

// A drained run, one whose job is not known any more, and the reset of a job's counters when it goes.
func TestRunsOfUnknownJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := story(t)
		r.until(2*time.Minute + 5*time.Second)
		synctest.Wait()
		assert.Equal(t, []string{`runs_active{job_name="good"} 1`, `runs_active{job_name="long"} 1`}, samples(t, r.m, "runs_active"))
		only := []*jobs.Job{job(t, "good", "*/2 * * * *", nil), job(t, "new", "0 0 * * *", nil)}
		r.m.Know(only)
		r.sched.Reload(only, "2")
		assert.Equal(t, []string{`runs_active{job_name=""} 1`, `runs_active{job_name="good"} 1`}, samples(t, r.m, "runs_active"))
		assert.Empty(t, samples(t, r.m, "runs_total"), "what long has counted is gone with it")
		r.leave()
		assert.Equal(t, []string{
			`runs_total{job_name="",outcome="cancelled",trigger="schedule"} 1`,
			`runs_total{job_name="good",outcome="cancelled",trigger="schedule"} 1`,
		}, samples(t, r.m, "runs_total", "runs_active"))
	})
}

// Locks that are asked for through the API are counted by their results, and renewals by how much time they had.
func TestLockMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := raise(t, nil, nil)
		r.leave()
		plain, err := locking.NewStore(r.db.Main)
		require.NoError(t, err)
		store := r.m.Store(plain)
		take := func(owner string) {
			_, err := store.Acquire(t.Context(), []locking.AcquireRequest{{Resource: "x", Owner: owner, TTL: time.Minute}})
			require.NoError(t, err)
		}
		take("A")
		take("A")
		take("B")
		time.Sleep(2 * time.Minute)
		take("B")
		require.NoError(t, r.db.Main.Close())
		_, err = store.Acquire(t.Context(), []locking.AcquireRequest{{Resource: "x", Owner: "C", TTL: time.Minute}, {Resource: "y", Owner: "C", TTL: time.Minute}})
		require.Error(t, err)
		r.m.Lock(locking.Event{Kind: locking.EventUnconfirmed})
		r.m.Lock(locking.Event{Kind: locking.EventRenewed, Slack: 17 * time.Second})
		r.m.Lock(locking.Event{Kind: locking.EventLost, Held: time.Minute})
		r.m.Lock(locking.Event{Kind: locking.EventReleased})
		assert.ElementsMatch(t, []string{
			`lock_acquisitions_total{result="acquired"} 1`, `lock_acquisitions_total{result="busy"} 1`,
			`lock_acquisitions_total{result="error"} 2`, `lock_acquisitions_total{result="extended"} 1`,
			`lock_acquisitions_total{result="takeover"} 1`, `lock_takeovers_total 1`, `lock_renew_failures_total 1`, `lock_lost_total 1`,
			`lock_renewal_slack_seconds_sum 17`, `lock_hold_seconds_sum 60`, `lock_hold_seconds_count 1`,
		}, samples(t, r.m, "lock_acquisitions_total", "lock_takeovers_total", "lock_renew_failures_total", "lock_lost_total",
			"lock_renewal_slack_seconds_sum", "lock_hold_seconds_sum", "lock_hold_seconds_count"))
	})
}
