package fleet

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/jobs"
)

// failAt makes a daemon obey a failpoint once; hit reports whether it came by.
func (f *Fleet) failAt(point, action string) (env []string, hit func() bool) {
	mark := filepath.Join(f.dir, point+"-"+action)
	env = []string{"CRONLATCH_FAILPOINT=" + point + "=" + action, "CRONLATCH_FAILPOINT_MARK=" + mark}
	return env, func() bool {
		_, err := os.Stat(mark)
		return err == nil
	}
}

// freezeAt makes a fleet with a daemon that froze at the failpoint, with the run that it has claimed. Another goroutine of
// the daemon may be inside a transaction at that moment; on SQLite that stops everybody (see FreezeVictim), so another
// fleet is tried.
func freezeAt(t *testing.T, url, point string) (*Fleet, *Replica, jobs.Run) {
	t.Helper()
	for {
		f := New(t, url, Settings{TTL: roomyTTL, Jobs: []Job{retried()}})
		run := f.Trigger("job")
		env, hit := f.failAt(point, "stop")
		a := f.Start("a", env...)
		a.WaitFrozen()
		require.True(t, hit())
		if f.writable() {
			run, err := f.Ledger.Get(t.Context(), run.ID)
			require.NoError(t, err)
			require.Equal(t, jobs.StateRunning, run.State)
			return f, a, run
		}
		a.Kill()
		url = sqliteURL(t)
	}
}

// P4, P5: a daemon that is frozen between claim and start finds, when it wakes up, that its attempt was given away. It
// never starts it, and what it has to say about it is kept aside.
func TestFrozenBetweenClaimAndStart(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"claimed", "starting"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, url string) {
				t.Helper()
				f, a, run := freezeAt(t, url, point)

				f.StartReady("b")
				lost := f.WaitFinished(run.ID)
				assert.Equal(t, jobs.OutcomeLost, lost.Outcome)
				assert.Equal(t, a.Name, lost.Replica)
				again := f.WaitFinished(f.WaitAttempt(run, 2).ID)
				assert.Equal(t, jobs.OutcomeSucceeded, again.Outcome)

				a.Thaw()
				late := f.WaitRun(run.ID, "the late outcome is kept aside", func(r *jobs.Run) bool { return r.LateOutcome != nil })
				assert.Contains(t, string(late.LateOutcome), jobs.ReasonStaleStart)
				h := f.Rest()
				// A command that is stopped at once may die before it can record anything, so the audit counts too.
				assert.NotContains(t, a.Log(), audit.RunStart)
				assert.Len(t, h.Runs, 2)
				assert.False(t, slices.ContainsFunc(h.Events, func(e record.Event) bool { return e.Run == run.ID }),
					"the attempt that was given away has never started")
			})
		})
	}
}

// P5: the resource of a lost run is somebody else's before anybody has noticed. The run is lost all the same, and its
// next attempt waits for the resource.
func TestForeignClientTakesTheResourceBeforeRecovery(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		job := retried()
		job.Resource = "db/orders"
		f := New(t, url, Settings{TTL: roomyTTL, Jobs: []Job{job}})
		a := f.StartReady("a")
		run := f.WaitAlive(f.Trigger("job").ID, record.Grandchild)
		a.Kill()
		client := f.Take("db/orders", clientTTL)
		granted := boottime.Now()
		assert.Less(t, f.LastSign(run.ID), granted, "the job was dead before the client got its resource")
		assert.Empty(t, f.JobProcesses())

		f.StartReady("b")
		lost := f.WaitFinished(run.ID)
		assert.Equal(t, jobs.OutcomeLost, lost.Outcome)
		next := f.WaitAttempt(run, 2)
		assert.Equal(t, jobs.StatePending, next.State)
		pass(t, boottime.Now()+2*time.Second) // two looks of the replica
		assert.Equal(t, jobs.StatePending, f.WaitAttempt(run, 2).State, "the client still holds the resource")

		client.Release()
		again := f.WaitFinished(next.ID)
		assert.Equal(t, jobs.OutcomeSucceeded, again.Outcome)
		assert.Less(t, run.FencingToken, client.record.FencingToken)
		assert.Less(t, client.record.FencingToken, again.FencingToken)
		assert.Len(t, f.Rest().Runs, 2)
	})
}

// P5, P6: a daemon that dies between two steps leaves the state before or after a whole one. Three jobs, one for each
// policy, are claimed together; each has one row for each attempt and no lock is left.
func TestCrashPoints(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"claimed", "starting", "finishing"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, url string) {
				t.Helper()
				crashAt(t, url, point)
			})
		})
	}
}

func crashAt(t *testing.T, url, point string) {
	t.Helper()
	var list []Job
	for _, policy := range []string{"fail", "retry", "hold"} {
		list = append(list, Job{Name: policy, Args: []string{"-for", "100ms"}, OnLost: policy})
	}
	f := New(t, url, Settings{TTL: roomyTTL, Jobs: list})
	runs := map[string]jobs.Run{}
	for _, j := range list {
		runs[j.Name] = f.Trigger(j.Name)
	}
	env, hit := f.failAt(point, "kill")
	a := f.Start("a", env...)
	assert.Equal(t, -1, a.Wait(patience))
	require.True(t, hit())

	f.StartReady("b")
	h := f.Rest()
	count := map[string]int{}
	for i := range h.Runs {
		count[h.Runs[i].Job]++
	}
	for policy, run := range runs {
		first := f.WaitFinished(run.ID)
		if point != "finishing" || first.Outcome != jobs.OutcomeSucceeded { // another one may have been finished before the crash
			assert.Equal(t, jobs.OutcomeLost, first.Outcome, policy)
		}
		want := 1
		if wasLost(&first) && policy != "fail" {
			want = 2
		}
		assert.Equal(t, want, count[policy], "rows of "+policy)
	}
	assert.Positive(t, countLost(h.Runs))
}
