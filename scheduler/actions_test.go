package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func (b *bench) actions() *Actions {
	a, err := OpenActions(b.db)
	require.NoError(b.t, err)
	return a
}

// start makes a manual run.
func (b *bench) start(j *jobs.Job, id string) jobs.Run {
	run, created, err := b.actions().Start(b.ctx(), StartRequest{Job: j, RequestID: id, By: "ann"})
	require.NoError(b.t, err)
	require.True(b.t, created)
	return run
}

func (b *bench) run(id int64) jobs.Run {
	runs, err := jobs.ScanRuns(b.ctx(), b.db.NewRaw(b.q.byID, id))
	require.NoError(b.t, err)
	require.Len(b.t, runs, 1)
	return runs[0]
}

// deeds are the rows of people in the audit, each as "action who run".
func (b *bench) deeds() (rows []string) {
	err := b.db.NewRaw(`SELECT action || ' ' || actor_id || ' ' || coalesce(CAST(run_id AS text), '-') FROM audit_log
		WHERE actor_type = 'user' ORDER BY id`).Scan(b.ctx(), &rows)
	require.NoError(b.t, err)
	return rows
}

func (b *bench) rowCount() (n int) {
	require.NoError(b.t, b.db.NewRaw("SELECT count(*) FROM job_runs").Scan(b.ctx(), &n))
	return n
}

func TestStartIsIdempotentByRequestID(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named(`it's "100%"? {x} 🚀`, nil)(b.t)
		first := b.start(j, "r1")
		again, created, err := b.actions().Start(b.ctx(), StartRequest{Job: j, RequestID: "r1", By: "bob"})
		require.NoError(b.t, err)
		assert.False(b.t, created)
		assert.Equal(b.t, first, again, "the first request wins, although its run is in the way of any other")
		assert.Equal(b.t, "m:r1", first.Occurrence)
		assert.Equal(b.t, j.Name, first.Job)
		assert.Equal(b.t, "ann", first.RequestedBy)
		assert.Equal(b.t, jobs.StatePending, first.State)
		assert.Equal(b.t, jobs.TriggerManual, first.Trigger)
		assert.Equal(b.t, []string{fmt.Sprint("run.trigger ann ", first.ID)}, b.deeds())
	})
}

func TestStartDuringOverlap(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		skip := named("skip", nil)(b.t)
		refused := func(by int64) {
			_, _, err := b.actions().Start(b.ctx(), StartRequest{Job: skip, By: "ann"})
			busy, ok := errors.AsType[*BusyError](err)
			require.True(b.t, ok, "%v", err)
			assert.Equal(b.t, by, busy.Run.ID)
		}
		waiting := b.start(skip, "one")
		refused(waiting.ID) // pending and due
		c := b.mustClaim(1, "skip")[0]
		refused(c.run.ID)
		b.mustFinish(c, jobs.OutcomeSucceeded)
		b.start(skip, "two")
		for _, overlap := range []jobs.Overlap{jobs.OverlapQueue, jobs.OverlapReplace, jobs.OverlapAllow} {
			j := named(string(overlap), func(j *jobs.Job) { j.Overlap = overlap })(b.t)
			b.start(j, "one")
			b.start(j, "two")
		}
		off := named("off", func(j *jobs.Job) { j.Enabled = false })(b.t)
		_, _, err := b.actions().Start(b.ctx(), StartRequest{Job: off})
		require.ErrorIs(b.t, err, ErrDisabled)
	})
}

// What a manual run would not wait for is not in its way either.
func TestStartBesideWhatIsPaused(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", nil)(b.t)
		b.put(b.due(j, time.Minute))
		p := &Pauses{b.store}
		_, err := p.Pause(b.ctx(), PauseRequest{Jobs: []string{"j"}, By: "t"})
		require.NoError(b.t, err)
		run := b.start(j, "one")
		c := b.mustClaim(1, "j")
		require.Len(b.t, c, 1)
		assert.Equal(b.t, run.ID, c[0].run.ID)
	})
}

func TestStartTwiceAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", nil)(b.t)
		var mu sync.Mutex
		var started, busy int
		together(8, func(i int) {
			_, created, err := b.actions().Start(b.ctx(), StartRequest{Job: j, RequestID: strconv.Itoa(i), By: "ann"})
			mu.Lock()
			defer mu.Unlock()
			if _, ok := errors.AsType[*BusyError](err); ok {
				busy++
			} else if assert.NoError(b.t, err) && created {
				started++
			}
		})
		assert.Equal(b.t, 1, started)
		assert.Equal(b.t, 7, busy)
		assert.Equal(b.t, 1, b.rowCount())
	})
}

// together calls f from n goroutines.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

func (b *bench) cancel(id int64) (jobs.Run, error) {
	return b.actions().Cancel(b.ctx(), RunRequest{ID: id, By: "bob", Reason: "enough"})
}

func TestCancelBeforeTheStart(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		run := b.start(named("j", func(j *jobs.Job) { j.Followed, j.Retry = true, jobs.Retry{Attempts: 3} })(b.t), "one")
		got, err := b.cancel(run.ID)
		require.NoError(b.t, err)
		assert.Equal(b.t, jobs.OutcomeCancelled, got.Outcome)
		assert.Equal(b.t, jobs.ReasonRequested, got.Reason)
		assert.JSONEq(b.t, `{"requested_by": "bob", "reason": "enough"}`, string(got.Detail))
		assert.True(b.t, got.Follow, "its hooks hear of it")
		assert.Equal(b.t, 1, b.rowCount(), "no attempt follows")
		_, err = b.cancel(run.ID)
		require.ErrorIs(b.t, err, ErrFinished)
		_, err = b.cancel(999)
		require.ErrorIs(b.t, err, jobs.ErrRunNotFound)
		assert.Equal(b.t, []string{fmt.Sprint("run.trigger ann ", run.ID), fmt.Sprint("run.cancel bob ", run.ID)}, b.deeds())
	})
}

func TestCancelOfARunningRun(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", func(j *jobs.Job) { j.OnLost, j.Retry = jobs.OnLostRetry, jobs.Retry{Attempts: 3} })(b.t)
		for _, outcome := range []jobs.Outcome{jobs.OutcomeCancelled, jobs.OutcomeFailed, jobs.OutcomeLost} {
			run := b.start(j, string(outcome))
			c := b.mustClaim(1, "j")[0]
			got, err := b.cancel(run.ID)
			require.NoError(b.t, err)
			assert.Equal(b.t, jobs.StateRunning, got.State)
			assert.Equal(b.t, jobs.ReasonRequested, got.CancelReason)
			again, err := b.actions().Cancel(b.ctx(), RunRequest{ID: run.ID, By: "eve"})
			require.NoError(b.t, err)
			assert.Equal(b.t, got, again)
			done, err := b.finish(b.ctx(), &report{run: c.run, outcome: outcome, again: outcome == jobs.OutcomeLost})
			require.NoError(b.t, err)
			assert.Nil(b.t, done.next, "no attempt follows a cancelled run, however it ends")
		}
		assert.Len(b.t, b.deeds(), 6, "the second request for the same changes nothing")
	})
}

func TestCancelOfAHeldRun(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		held := b.held()
		got, err := b.cancel(held.ID)
		require.NoError(b.t, err)
		assert.Equal(b.t, jobs.OutcomeCancelled, got.Outcome)
	})
}

// held is a run that waits for a person: the attempt after a lost one.
func (b *bench) held() jobs.Run {
	b.start(named("h", func(j *jobs.Job) { j.OnLost = jobs.OnLostHold })(b.t), "one")
	c := b.mustClaim(1, "h")[0]
	done, err := b.finish(b.ctx(), &report{run: c.run, outcome: jobs.OutcomeLost, reason: jobs.ReasonLeaseLost, again: true})
	require.NoError(b.t, err)
	require.NotNil(b.t, done.next)
	require.Equal(b.t, jobs.StateHeld, done.next.State)
	return *done.next
}

// Whoever comes first, a run ends once, and is cancelled only if the request was there before its end.
func TestCancelAgainstFinish(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", nil)(b.t)
		for i := range 20 {
			run := b.start(j, strconv.Itoa(i))
			c := b.mustClaim(1, "j")[0]
			var refused error
			together(2, func(who int) {
				if who == 0 {
					_, refused = b.cancel(run.ID)
					return
				}
				_, err := b.finish(b.ctx(), &report{run: c.run, outcome: jobs.OutcomeFailed, reason: jobs.ReasonExit})
				assert.NoError(b.t, err)
			})
			got := b.run(run.ID)
			assert.Equal(b.t, jobs.OutcomeFailed, got.Outcome)
			if refused != nil {
				require.ErrorIs(b.t, refused, ErrFinished)
			}
			assert.Equal(b.t, refused == nil, got.CancelReason != "")
		}
	})
}

func (b *bench) retry(id int64, force bool, j *jobs.Job) (jobs.Run, error) {
	return b.actions().Retry(b.ctx(), RetryRequest{RunRequest{ID: id, By: "bob"}, force, j})
}

// hasEnded is a scheduled run of the job with an outcome.
func (b *bench) hasEnded(j *jobs.Job, ago time.Duration, outcome jobs.Outcome) jobs.Run {
	n := b.due(j, ago)
	n.State, n.Outcome, n.Reason = jobs.StateFinished, &outcome, jobs.ReasonExit
	return b.put(n)[0]
}

func TestRetry(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", func(j *jobs.Job) { j.Followed = true })(b.t)
		for i, outcome := range []jobs.Outcome{jobs.OutcomeFailed, jobs.OutcomeSkipped, jobs.OutcomeMissed, jobs.OutcomeCancelled, jobs.OutcomeLost} {
			was := b.hasEnded(j, time.Duration(i+1)*time.Minute, outcome)
			before := b.clock()
			next, err := b.retry(was.ID, false, j)
			require.NoError(b.t, err, outcome)
			assert.Equal(b.t, was.Occurrence, next.Occurrence)
			assert.Equal(b.t, 2, next.Attempt)
			assert.Equal(b.t, jobs.TriggerRetry, next.Trigger)
			assert.Equal(b.t, jobs.RuleWait, next.Overlap)
			assert.Equal(b.t, "bob", next.RequestedBy)
			assert.GreaterOrEqual(b.t, next.MaxAttempts, 2)
			assert.True(b.t, next.Follow, "what comes after the job hears of it")
			assert.WithinRange(b.t, next.DueAt, before, b.clock())
			_, err = b.retry(was.ID, true, j)
			superseded, ok := errors.AsType[*SupersededError](err)
			require.True(b.t, ok, "%v", err)
			assert.Equal(b.t, next.ID, superseded.RunID)
			_, err = b.retry(next.ID, true, j)
			require.ErrorIs(b.t, err, ErrUnfinished)
			c := b.mustClaim(1, "j")
			require.Len(b.t, c, 1)
			b.mustFinish(c[0], jobs.OutcomeSucceeded)
		}
		_, err := b.retry(999, false, nil)
		require.ErrorIs(b.t, err, jobs.ErrRunNotFound)
	})
}

func TestRetryOfASuccess(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", oncePerResource)(b.t)
		b.put(b.due(j, time.Minute))
		c := b.mustClaim(1, "j")[0]
		b.mustFinish(c, jobs.OutcomeSucceeded)
		_, err := b.retry(c.run.ID, false, j)
		require.ErrorIs(b.t, err, ErrSucceeded)
		_, err = b.retry(c.run.ID, true, named("j", func(j *jobs.Job) { j.Enabled = false })(b.t))
		require.ErrorIs(b.t, err, ErrDisabled)
		next, err := b.retry(c.run.ID, true, j)
		require.NoError(b.t, err)
		ended, _ := b.mustSettle()
		assert.Empty(b.t, ended, "force is not stopped by once_per")
		won := b.mustClaim(1, "j")
		require.Len(b.t, won, 1)
		assert.Equal(b.t, next.ID, won[0].run.ID)
	})
}

func TestRetryReleasesAHeldRun(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		held := b.held()
		got, err := b.retry(held.ID, false, nil)
		require.NoError(b.t, err)
		assert.Equal(b.t, held.ID, got.ID)
		assert.Equal(b.t, jobs.StatePending, got.State)
		require.Len(b.t, b.mustClaim(1, "h"), 1)
	})
}

func TestRetryTwiceAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		was := b.hasEnded(named("j", nil)(b.t), time.Minute, jobs.OutcomeFailed)
		var mu sync.Mutex
		var made, refused []int64
		together(6, func(int) {
			next, err := b.retry(was.ID, false, nil)
			mu.Lock()
			defer mu.Unlock()
			if s, ok := errors.AsType[*SupersededError](err); ok {
				refused = append(refused, s.RunID)
			} else if assert.NoError(b.t, err) {
				made = append(made, next.ID)
			}
		})
		require.Len(b.t, made, 1)
		assert.Equal(b.t, slices.Repeat(made, 5), refused)
	})
}
