package fleet

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// post asks a replica for something, and reads its answer into out, whatever the status says.
func (f *Fleet) post(r *Replica, path string, body, out any) (status int) {
	f.tb.Helper()
	status, err := f.tryPost(r, path, body, out)
	f.must(err)
	return status
}

// refusal is what a problem says about a run that is in the way.
type refusal struct {
	Code  string `json:"code"`
	RunID int64  `json:"run_id"`
}

// three starts three replicas.
func (f *Fleet) three() {
	f.tb.Helper()
	for _, name := range []string{"a", "b", "c"} {
		f.StartReady(name)
	}
}

// runsOn is the replica that runs a run, and one that does not.
func (f *Fleet) runsOn(run jobs.Run) (runner, other *Replica) {
	f.tb.Helper()
	all := f.Replicas()
	i := slices.IndexFunc(all, func(r *Replica) bool { return r.Name == run.Replica })
	return all[i], all[(i+1)%len(all)]
}

// processesOf are the processes that a run has recorded.
func (f *Fleet) processesOf(run int64) (pids []int) {
	f.tb.Helper()
	for _, e := range f.Events() {
		if e.Run == run && !slices.Contains(pids, e.PID) {
			pids = append(pids, e.PID)
		}
	}
	return pids
}

// cancelledWithin is the promise: so soon after the request nothing of the run is alive, when the job has kill_after: 1s.
const cancelledWithin = 2 * time.Second

// A job that runs anywhere refuses another manual run everywhere, with the id of the one that is in the way. Cancelled at a
// replica that does not run it, it ends with everything it has started, a grandchild in a session of its own included that
// ignores SIGTERM, and is not tried again.
func TestCancelOnAnyReplica(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		f := New(t, url, Settings{Jobs: []Job{{
			Name: "long", Args: []string{"-for", "3m", "-grandchild"}, Overlap: "skip", Keys: []string{"retry: {attempts: 3, delay: 0s}"},
		}}})
		f.three()
		var took []time.Duration
		const times = 5
		for i := range times {
			var started wire.Run
			require.Equal(t, http.StatusCreated, f.post(f.Replicas()[i%3], "/jobs/long/runs", wire.Start{}, &started))
			run := f.WaitAlive(started.ID, record.Grandchild)
			_, other := f.runsOn(run)
			for _, r := range f.Replicas() {
				var no refusal
				assert.Equal(t, http.StatusConflict, f.post(r, "/jobs/long/runs", wire.Start{}, &no), r.Name)
				assert.Equal(t, refusal{"overlap", run.ID}, no, r.Name)
			}
			pids := f.processesOf(run.ID)
			require.Len(t, pids, 2)
			family := f.family()
			require.True(t, family.has(pids[0]) && family.has(pids[1]), "both are alive")

			asked := boottime.Now()
			require.Equal(t, http.StatusOK, f.post(other, fmt.Sprintf("/runs/%d/cancel", run.ID), wire.Cancel{Reason: "wrong day"}, &started))
			until(t, "its processes are gone", patience, func() bool { return !slices.ContainsFunc(pids, family.has) })
			took = append(took, boottime.Now()-asked)
			ended := f.WaitFinished(run.ID)
			assert.Equal(t, []any{jobs.OutcomeCancelled, jobs.ReasonRequested}, []any{ended.Outcome, ended.Reason})
			assert.Contains(t, string(ended.Detail), "wrong day")
			assert.Len(t, f.Runs(), i+1, "what comes after an attempt is there with its outcome: nothing does")
		}
		t.Logf("from the request to the end of the last process: %s", took)
		keptPromise(t, took, cancelledWithin)
		require.Len(t, f.Rest().Runs, times)
	})
}

// A failed run is tried again from a replica that did not run it; the attempt that is held since a
// replica was killed is released by the same request, and is itself what runs.
func TestRetryFromAnyReplica(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		f := New(t, url, Settings{TTL: roomyTTL, Jobs: []Job{
			{Name: "fails", Command: script(`test "$CRONLATCH_ATTEMPT" -ge 2`)},
			{Name: "held", Command: script(`{ test -e "$FLEET_DIR/end" || sleep 180; }`), OnLost: "hold"},
		}})
		f.three()
		failed := f.WaitFinished(f.Trigger("fails").ID)
		require.Equal(t, []any{jobs.OutcomeFailed, 1}, []any{failed.Outcome, failed.Attempt})
		_, other := f.runsOn(failed)
		var next wire.Run
		require.Equal(t, http.StatusOK, f.post(other, fmt.Sprintf("/runs/%d/retry", failed.ID), wire.Retry{Reason: "mended"}, &next))
		assert.Equal(t, []any{2, failed.Occurrence}, []any{next.Attempt, next.Occurrence})
		again := f.WaitFinished(next.ID)
		assert.Equal(t, []any{jobs.OutcomeSucceeded, jobs.TriggerRetry, 2}, []any{again.Outcome, again.Trigger, again.Attempt})
		var no refusal
		assert.Equal(t, http.StatusConflict, f.post(other, fmt.Sprintf("/runs/%d/retry", failed.ID), wire.Retry{}, &no))
		assert.Equal(t, refusal{"superseded", next.ID}, no)

		run := f.Trigger("held")
		until(t, "it has begun", patience, func() bool { return len(f.processesOf(run.ID)) > 0 })
		runner, other := f.runsOn(f.WaitRun(run.ID, "it runs", func(r *jobs.Run) bool { return r.State == jobs.StateRunning }))
		runner.Kill()
		held := f.WaitAttempt(run, 2)
		require.Equal(t, jobs.StateHeld, held.State)
		f.allow("end")
		var released wire.Run
		require.Equal(t, http.StatusOK, f.post(other, fmt.Sprintf("/runs/%d/retry", held.ID), wire.Retry{}, &released))
		assert.Equal(t, held.ID, released.ID)
		done := f.WaitFinished(held.ID)
		assert.Equal(t, jobs.OutcomeSucceeded, done.Outcome)
		assert.NotEqual(t, runner.Name, done.Replica)
		require.Len(t, f.settled().Runs, 4)
	})
}

// What the jobs themselves have recorded counts: each instant of a backfill was begun once, on all replicas together.
func TestBackfillStartsEachInstantOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		const instants, concurrency = 1000, 20
		far := time.Now().UTC().Add(12 * time.Hour).Hour() // none of its instants is now
		f := New(t, url, Settings{Capacity: 10, Jobs: []Job{
			{Name: "daily", Schedule: fmt.Sprintf("0 0 %d * * *", far), Resource: "daily-YYYY-MM-DD"},
		}})
		f.three()
		from := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -instants-5).Add(time.Duration(far) * time.Hour)
		ask := wire.Backfill{From: from, Until: from.AddDate(0, 0, instants-1), Concurrency: concurrency}
		asked := boottime.Now()
		var answer wire.Backfilled
		again := false // who is told 503, because the database was too busy for so many rows, asks again
		until(t, "the backfill is taken", patience, func() bool {
			status := f.post(f.Replicas()[1], "/jobs/daily/backfill", ask, &answer)
			again = again || status == http.StatusServiceUnavailable
			require.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, status)
			return status == http.StatusOK
		})
		require.True(t, answer.Runs == instants || again && answer.Runs == 0, "%d runs", answer.Runs)
		var second wire.Backfilled
		require.Equal(t, http.StatusOK, f.post(f.Replicas()[2], "/jobs/daily/backfill", ask, &second))
		assert.Zero(t, second.Runs, "asked again at once elsewhere, it is what was asked before")
		until(t, "the backfill has ended", 6*patience, func() bool { return f.count(`state <> 'finished'`) == 0 })
		t.Logf("%d instants took %s", instants, boottime.Now()-asked)
		f.LeaveAll()

		h := History{f.Runs(), f.Events()}
		starts, replicas := map[time.Time]int{}, map[string]bool{}
		for _, e := range h.Events {
			if e.Kind == record.Start {
				starts[e.At.UTC()]++
			}
		}
		for i := range instants {
			assert.Equal(t, 1, starts[from.AddDate(0, 0, i)], "instant %d", i)
		}
		assert.Len(t, starts, instants)
		for _, r := range h.Runs {
			assert.Equal(t, []any{jobs.OutcomeSucceeded, jobs.TriggerBackfill, 1}, []any{r.Outcome, r.Trigger, r.Attempt}, "run %d", r.ID)
			replicas[r.Replica] = true
		}
		assert.Len(t, replicas, 3, "all of them take part")
		require.NoError(t, errors.Join(check.Exclusive(h.Events), check.Starts(h.Runs, h.Events), check.Tokens(h.Runs), check.Finished(h.Runs)))
		store, err := locking.NewStore(f.DB.Main)
		require.NoError(t, err)
		held, err := store.List(t.Context(), locking.ListFilter{State: locking.StateHeld})
		require.NoError(t, err)
		assert.Empty(t, held)
	})
}
