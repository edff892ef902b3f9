package fleet

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/internal/pgserver"
	"github.com/cronlatch/cronlatch/jobs"
)

// killAfter is the jobs' kill_after here.
const killAfter = time.Second

// drain is the drain_timeout of a fleet that says nothing about it.
const drain = 5 * time.Second

// bound is how long a daemon may take to leave: what it allows itself, and room for a busy machine.
func bound(drain time.Duration) time.Duration { return drain + killAfter + 5*time.Second + onTime }

// P9: a running job that ends within drain_timeout ends as if nothing had happened, and its lock is free at once.
func TestDrainLetsJobsFinish(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		const drain = 20 * time.Second
		f := New(t, url, Settings{Drain: drain, Jobs: []Job{{Name: "job", Args: []string{"-for", "2s"}, OnLost: "retry"}}})
		a := f.StartReady("a")
		run := f.WaitAlive(f.Trigger("job").ID, record.Main)
		a.Leave(bound(drain))
		done := f.WaitFinished(run.ID)
		assert.Equal(t, jobs.OutcomeSucceeded, done.Outcome)
		left := boottime.Now()
		f.Take("job", time.Minute).Release()
		assert.Less(t, boottime.Now()-left, 10*time.Second, "the lock was released, it did not expire")
		assert.Len(t, f.Rest().Runs, 1)
	})
}

// P9: what does not end within drain_timeout is stopped, canceled, and taken over at once; the lock would have lived for
// another half a minute.
func TestDrainStopsJobsAndOthersTakeOver(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		const drain = time.Second
		job := Job{Name: "job", Args: []string{"-for", "50s", "-ignore-term", "-grandchild"}, OnLost: "retry", KillAfter: killAfter}
		f := New(t, url, Settings{Drain: drain, Jobs: []Job{job}})
		a := f.StartReady("a")
		run := f.WaitAlive(f.Trigger("job").ID, record.Grandchild)
		job.Args = []string{"-for", "100ms"}
		f.Configure(Settings{Drain: drain, Jobs: []Job{job}})
		f.StartReady("b")
		a.Leave(bound(drain))

		stopped := f.WaitFinished(run.ID)
		assert.Equal(t, jobs.OutcomeCancelled, stopped.Outcome)
		assert.Equal(t, jobs.ReasonDrain, stopped.Reason)
		again := f.WaitFinished(f.WaitAttempt(run, 2).ID)
		assert.Equal(t, jobs.OutcomeSucceeded, again.Outcome)
		assert.Equal(t, "b", again.Replica)
		assert.Less(t, again.StartedAt.Sub(*stopped.FinishedAt), 10*time.Second, "taken over, not waited for")
		assert.Len(t, f.Rest().Runs, 2)
	})
}

// A second SIGTERM means now: a daemon that had a minute leaves within kill_after and a bit.
func TestSecondSignalMeansNow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		job := Job{Name: "job", Args: []string{"-for", "50s", "-ignore-term"}, KillAfter: killAfter}
		f := New(t, url, Settings{Drain: time.Minute, Jobs: []Job{job}})
		a := f.StartReady("a")
		run := f.WaitAlive(f.Trigger("job").ID, record.Main)
		a.Signal(syscall.SIGTERM)
		a.Says("once more to stop them now")
		a.Leave(bound(0)) // sends the second one
		stopped := f.WaitFinished(run.ID)
		assert.Equal(t, jobs.OutcomeCancelled, stopped.Outcome)
		assert.Equal(t, jobs.ReasonDrain, stopped.Reason)
		f.StartReady("b")
		assert.Len(t, f.Rest().Runs, 1)
	})
}

// P8, P9: the database is down when the daemon is asked to leave. It goes in time all the same, its job dies with it, and
// the run is found to be lost by the next one.
func TestLeavingWhileTheDatabaseIsDown(t *testing.T) {
	t.Parallel()
	const drain = 2 * time.Second
	server := pgserver.Start(t)
	job := Job{Name: "job", Args: []string{"-for", "50s", "-ignore-term", "-grandchild"}, KillAfter: killAfter, OnLost: "fail"}
	f := New(t, server.URL(), Settings{Drain: drain, Jobs: []Job{job}})
	a := f.StartReady("a")
	run := f.WaitAlive(f.Trigger("job").ID, record.Grandchild)
	server.Stop(pgserver.Immediate)
	a.Signal(syscall.SIGTERM)
	code := a.Wait(bound(drain))
	t.Logf("the daemon left with %d", code)
	assert.NotEqual(t, -1, code)
	assert.Empty(t, f.JobProcesses())

	server.Restart()
	f.StartReady("b")
	lost := f.WaitFinished(run.ID)
	assert.Equal(t, jobs.OutcomeLost, lost.Outcome)
	assert.Len(t, f.Rest().Runs, 1)
}
