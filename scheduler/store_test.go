package scheduler

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// bench is a store with what a test does around it.
type bench struct {
	*store
	t testing.TB
}

func each(t *testing.T, f func(b *bench)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		f(open(t, db))
	})
}

func open(tb testing.TB, db *database.DB) *bench {
	tb.Helper()
	s, err := openStore(db.Main)
	require.NoError(tb, err)
	return &bench{s, tb}
}

func (b *bench) ctx() context.Context { return b.t.Context() }

func (b *bench) clock() time.Time {
	now, err := b.now(b.ctx(), b.db)
	require.NoError(b.t, err)
	return now
}

// put inserts rows that are due, age ago each.
func (b *bench) put(rows ...jobs.NewRun) []jobs.Run {
	runs, err := b.insertRuns(b.ctx(), b.db, rows)
	require.NoError(b.t, err)
	return runs
}

// due is a pending row of the job that fell due some time ago.
func (b *bench) due(j *jobs.Job, ago time.Duration) jobs.NewRun {
	return j.ScheduledRun(b.clock().Add(-ago).Truncate(time.Second))
}

func named(name string, change func(*jobs.Job)) func(testing.TB) *jobs.Job {
	return func(tb testing.TB) *jobs.Job {
		tb.Helper()
		return minuteJob(tb, func(j *jobs.Job) {
			tmpl, err := jobs.ParseTemplate(name, jobs.TemplateOptions{})
			require.NoError(tb, err)
			j.Name, j.Resource = name, tmpl
			if change != nil {
				change(j)
			}
		})
	}
}

func (b *bench) request(limit int, names ...string) claimRequest {
	return claimRequest{
		knows: func(name string) bool { return slices.Contains(names, name) }, not: []string{}, limit: limit, ttl: time.Hour, boot: boottime.Now,
		who: identity{Replica: "a", Host: "h", PID: 1, Nonce: "n"},
	}
}

func (b *bench) mustClaim(limit int, names ...string) []claimed {
	won, _, err := b.claim(b.ctx(), b.request(limit, names...))
	require.NoError(b.t, err)
	return won
}

func (b *bench) get(id int64) jobs.Run {
	l, err := jobs.OpenLedger(b.db)
	require.NoError(b.t, err)
	r, err := l.Get(b.ctx(), id)
	require.NoError(b.t, err)
	return r
}

func (b *bench) locks() locking.Store {
	s, err := locking.NewStore(b.db)
	require.NoError(b.t, err)
	return s
}

func TestAClaimTakesRowLockAndMarkTogether(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("backup:db", nil)(b.t)
		row := b.put(b.due(j, 5*time.Second))[0]
		won := b.mustClaim(10, j.Name)
		require.Len(b.t, won, 1)
		run := b.get(row.ID)
		assert.Equal(b.t, jobs.StateRunning, run.State)
		assert.Equal(b.t, "a", run.Replica)
		assert.NotZero(b.t, run.FencingToken)
		assert.NotNil(b.t, run.StartedAt)
		lock, err := b.locks().Get(b.ctx(), "backup:db")
		require.NoError(b.t, err)
		assert.Equal(b.t, run.Owner, lock.Owner)
		assert.Equal(b.t, run.FencingToken, lock.FencingToken)
		assert.Empty(b.t, b.mustClaim(10, j.Name), "nothing is left")
	})
}

func TestNothingStartsEarly(t *testing.T) { // P7
	t.Parallel()
	each(t, func(b *bench) {
		j := named("later", nil)(b.t)
		b.put(j.ScheduledRun(b.clock().Add(time.Hour).Truncate(time.Second)))
		assert.Empty(b.t, b.mustClaim(10, j.Name))
	})
}

func TestAnUnknownJobIsNotClaimed(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		b.put(b.due(named("theirs", nil)(b.t), time.Second))
		won, unknown, err := b.claim(b.ctx(), b.request(1, "ours"))
		require.NoError(b.t, err)
		assert.Empty(b.t, won)
		assert.Equal(b.t, []string{"theirs"}, unknown)

		b.put(b.due(named("ours", nil)(b.t), time.Second))
		r := b.request(1, "ours")
		r.not = unknown
		won, _, err = b.claim(b.ctx(), r)
		require.NoError(b.t, err)
		assert.Len(b.t, won, 1, "runs of others do not stand in the way")
	})
}

func TestABusyResourceWaitsAndDoesNotStarveOthers(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		busy, free := named("busy", nil)(b.t), named("free", nil)(b.t)
		b.acquire("busy", "somebody")
		row := b.put(b.due(busy, 10*time.Second))[0]
		b.put(b.due(free, 5*time.Second))
		won := b.mustClaim(1, "busy", "free")
		require.Len(b.t, won, 1, "the older row waits for its lock; the younger one runs")
		assert.Equal(b.t, "free", won[0].run.Job)
		assert.Equal(b.t, jobs.StatePending, b.get(row.ID).State)
	})
}

func (b *bench) acquire(resource, owner string) {
	res, err := b.locks().Acquire(b.ctx(), []locking.AcquireRequest{{Resource: resource, Owner: owner, TTL: time.Hour}})
	require.NoError(b.t, err)
	require.True(b.t, res[0].Acquired)
}

func TestOverlapSkip(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", nil)(b.t)
		first := b.put(b.due(j, 20*time.Second))[0]
		require.Len(b.t, b.mustClaim(10, "j"), 1)
		second := b.put(b.due(j, 10*time.Second))[0]
		ended, _, err := b.settle(b.ctx())
		require.NoError(b.t, err)
		require.Len(b.t, ended, 1)
		run := b.get(second.ID)
		assert.Equal(b.t, jobs.OutcomeSkipped, run.Outcome)
		assert.Equal(b.t, jobs.ReasonOverlap, run.Reason)
		assert.JSONEq(b.t, fmt.Sprintf(`{"unfinished_run": %d}`, first.ID), string(run.Detail))
	})
}

func TestOverlapLooksOnlyAtTheSameJob(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		shared := func(j *jobs.Job) {
			var err error
			j.Resource, err = jobs.ParseTemplate("db/orders", jobs.TemplateOptions{})
			require.NoError(b.t, err)
		}
		one, two := named("one", shared)(b.t), named("two", shared)(b.t)
		b.put(b.due(one, 20*time.Second))
		require.Len(b.t, b.mustClaim(10, "one", "two"), 1)
		waits := b.put(b.due(two, 10*time.Second))[0]
		ended, _, err := b.settle(b.ctx())
		require.NoError(b.t, err)
		assert.Empty(b.t, ended)
		assert.Empty(b.t, b.mustClaim(10, "one", "two"), "the shared resource is busy: it waits")
		assert.Equal(b.t, jobs.StatePending, b.get(waits.ID).State)
	})
}

func TestOverlapQueue(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", func(j *jobs.Job) { j.Overlap = jobs.OverlapQueue })(b.t)
		b.put(b.due(j, 30*time.Second))
		running := b.mustClaim(10, "j")
		require.Len(b.t, running, 1)
		waits := b.put(b.due(j, 20*time.Second))[0]
		tooMany := b.put(b.due(j, 10*time.Second))[0]
		ended, _, err := b.settle(b.ctx())
		require.NoError(b.t, err)
		require.Len(b.t, ended, 1)
		assert.Equal(b.t, tooMany.ID, ended[0].ID, "one waits, more are skipped")
		assert.Empty(b.t, b.mustClaim(10, "j"))
		b.mustFinish(running[0], jobs.OutcomeSucceeded)
		won := b.mustClaim(10, "j")
		require.Len(b.t, won, 1)
		assert.Equal(b.t, waits.ID, won[0].run.ID)
	})
}

func (b *bench) mustFinish(c claimed, o jobs.Outcome) finished {
	done, err := b.finish(b.ctx(), &report{run: c.run, outcome: o, again: o == jobs.OutcomeLost})
	require.NoError(b.t, err)
	return done
}

func TestCaughtUpInstantsRunOneAfterAnother(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", nil)(b.t)
		now := b.clock()
		rows := b.put(j.CatchUpRun(now.Add(-2*time.Minute).Truncate(time.Minute), now), j.CatchUpRun(now.Add(-time.Minute).Truncate(time.Minute), now))
		ended, _, err := b.settle(b.ctx())
		require.NoError(b.t, err)
		assert.Empty(b.t, ended, "exempt from overlap: skip")
		won := b.mustClaim(10, "j")
		require.Len(b.t, won, 1)
		assert.Equal(b.t, rows[0].ID, won[0].run.ID)
		b.mustFinish(won[0], jobs.OutcomeFailed)
		assert.Len(b.t, b.mustClaim(10, "j"), 1)
	})
}

func TestMissedSaysWhoHeldTheLock(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", func(j *jobs.Job) { j.StartDeadline = time.Second })(b.t)
		b.acquire("j", "secret-owner")
		row := b.put(b.due(j, 10*time.Second))[0]
		_, _, err := b.settle(b.ctx())
		require.NoError(b.t, err)
		run := b.get(row.ID)
		assert.Equal(b.t, jobs.OutcomeMissed, run.Outcome)
		assert.Equal(b.t, jobs.ReasonLockHeld, run.Reason)
		assert.Contains(b.t, string(run.Detail), "expires_at")
		assert.NotContains(b.t, string(run.Detail), "secret-owner")
	})
}

func TestMissedWithoutAnybodyToRunIt(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		row := b.put(b.due(named("j", func(j *jobs.Job) { j.StartDeadline = time.Second })(b.t), 10*time.Second))[0]
		assert.Empty(b.t, b.mustClaim(10, "j"), "too late to start")
		_, _, err := b.settle(b.ctx())
		require.NoError(b.t, err)
		assert.Equal(b.t, jobs.ReasonNoCapacity, b.get(row.ID).Reason)
	})
}

func TestFinishReleasesAndIsIdempotent(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", nil)(b.t)
		b.put(b.due(j, time.Second))
		c := b.mustClaim(1, "j")[0]
		r := &report{run: c.run, outcome: jobs.OutcomeFailed, reason: jobs.ReasonExit, output: jobs.Output{Head: []byte("a\x00\xff"), Total: 3}}
		for range 2 { // the answer to the first one was lost
			done, err := b.finish(b.ctx(), r)
			require.NoError(b.t, err)
			assert.False(b.t, done.late)
		}
		_, err := b.locks().Get(b.ctx(), "j")
		require.ErrorIs(b.t, err, locking.ErrNotFound)
		l, err := jobs.OpenLedger(b.db)
		require.NoError(b.t, err)
		out, err := l.Output(b.ctx(), c.run.ID)
		require.NoError(b.t, err)
		assert.Equal(b.t, []byte("a\x00\xff"), out.Head)
		assert.Equal(b.t, int64(3), out.Total)
	})
}

func TestOnLost(t *testing.T) {
	t.Parallel()
	for policy, want := range map[jobs.OnLost]jobs.State{jobs.OnLostFail: "", jobs.OnLostRetry: jobs.StatePending, jobs.OnLostHold: jobs.StateHeld} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			each(t, func(b *bench) {
				j := named("j", func(j *jobs.Job) { j.OnLost = policy })(b.t)
				b.put(b.due(j, time.Second))
				c := b.mustClaim(1, "j")[0]
				assert.Empty(b.t, b.mustRecover(), "its lock lives")
				b.expire(c)
				lost := b.mustRecover()
				require.Len(b.t, lost, 1)
				assert.Equal(b.t, jobs.OutcomeLost, b.get(c.run.ID).Outcome)
				if want == "" {
					assert.Nil(b.t, lost[0].next)
					return
				}
				assert.Equal(b.t, want, lost[0].next.State)
				assert.Equal(b.t, 2, lost[0].next.Attempt)
				assert.Equal(b.t, c.run.Occurrence, lost[0].next.Occurrence)
			})
		})
	}
}

// expire ends the lock of a run as if its time were over.
func (b *bench) expire(c claimed) {
	_, err := b.locks().ForceRelease(b.ctx(), locking.Force{
		Resource: c.run.Resource, FencingToken: c.run.FencingToken, Reason: "test", Actor: "test", Immediate: true,
	})
	require.NoError(b.t, err)
}

func (b *bench) mustRecover() []lostRun {
	lost, err := b.recoverLost(b.ctx(), identity{Replica: "b"})
	require.NoError(b.t, err)
	return lost
}

func TestRetriesAfterLossEnd(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", func(j *jobs.Job) { j.OnLost = jobs.OnLostRetry })(b.t)
		b.put(b.due(j, time.Second))
		for attempt := 1; attempt <= jobs.LostAttempts; attempt++ {
			won := b.mustClaim(1, "j")
			require.Len(b.t, won, 1)
			assert.Equal(b.t, attempt, won[0].run.Attempt)
			b.expire(won[0])
			require.Len(b.t, b.mustRecover(), 1)
		}
		assert.Empty(b.t, b.mustClaim(1, "j"))
	})
}

func TestARunIsLostThoughItsResourceIsHeldAgain(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		b.put(b.due(named("j", nil)(b.t), time.Second))
		c := b.mustClaim(1, "j")[0]
		b.expire(c)
		b.acquire("j", "an API client")
		require.Len(b.t, b.mustRecover(), 1)
		assert.Equal(b.t, jobs.OutcomeLost, b.get(c.run.ID).Outcome)
	})
}

func TestALateOutcomeIsRefusedAndKeptAside(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		b.put(b.due(named("j", nil)(b.t), time.Second))
		c := b.mustClaim(1, "j")[0]
		b.expire(c)
		b.mustRecover()
		assert.True(b.t, b.mustFinish(c, jobs.OutcomeSucceeded).late)
		run := b.get(c.run.ID)
		assert.Equal(b.t, jobs.OutcomeLost, run.Outcome)
		assert.Contains(b.t, string(run.LateOutcome), "succeeded")
	})
}

func TestPlanInsertsOnceAndMovesThePosition(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", nil)(b.t)
		mine := []*planned{{job: j, hash: j.Schedule.Hash()}}
		theirs := []*planned{{job: j, hash: j.Schedule.Hash()}}
		b.movePosition(mine[0], -2*time.Minute)
		require.NoError(b.t, b.loadPositions(b.ctx(), mine))
		require.NoError(b.t, b.loadPositions(b.ctx(), theirs))
		rules := planRules{late: time.Hour}
		rows, err := b.plan(b.ctx(), mine, rules)
		require.NoError(b.t, err)
		assert.NotEmpty(b.t, rows)
		again, err := b.plan(b.ctx(), theirs, rules)
		require.NoError(b.t, err)
		assert.Empty(b.t, again, "losing the race is silent")
		assert.True(b.t, theirs[0].next.After(b.clock().Add(-time.Second)), "and both go on from the same place")
	})
}

// movePosition makes the schedule look as if it had been planned up to some time ago.
func (b *bench) movePosition(p *planned, ago time.Duration) {
	require.NoError(b.t, b.loadPositions(b.ctx(), []*planned{p}))
	query := `UPDATE plan_positions SET position = position + ? * interval '1 millisecond' WHERE job = ?`
	if b.q == &sqliteQueries {
		query = `UPDATE plan_positions SET position = position + ? WHERE job = ?`
	}
	_, err := b.db.NewRaw(query, ago.Milliseconds(), p.job.Name).Exec(b.ctx())
	require.NoError(b.t, err)
}

func TestTwoHashesOfOneJobMakeOneRow(t *testing.T) { // replicas with different definitions
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", nil)(b.t)
		for _, hash := range []string{"old", "new"} {
			p := []*planned{{job: j, hash: hash}}
			require.NoError(b.t, b.loadPositions(b.ctx(), p))
		}
		p := []*planned{{job: j, hash: "old"}, {job: j, hash: "new"}}
		b.movePosition(p[0], -90*time.Second)
		require.NoError(b.t, b.loadPositions(b.ctx(), p))
		var n int
		for _, one := range p {
			rows, err := b.plan(b.ctx(), []*planned{one}, planRules{late: time.Hour})
			require.NoError(b.t, err)
			n += len(rows)
		}
		l, err := jobs.OpenLedger(b.db)
		require.NoError(b.t, err)
		runs, err := l.List(b.ctx(), jobs.RunFilter{Job: "j"})
		require.NoError(b.t, err)
		assert.Len(b.t, runs, n)
	})
}

func TestUnansweredClaimsAreSettledByReading(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		b.put(b.due(named("came", nil)(b.t), time.Second))
		committed := b.mustClaim(1, "came")
		never := claimed{lock: locking.Record{Owner: "a/n/999/1", FencingToken: 7}}
		ours, err := b.settleClaims(b.ctx(), append(committed, never))
		require.NoError(b.t, err)
		require.Len(b.t, ours, 1)
		assert.Equal(b.t, "came", ours[0].run.Job)
	})
}

func TestAClaimThatFailsLeavesNoLock(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		b.put(b.due(named("j", nil)(b.t), time.Second))
		broken := *b.q
		broken.markRunning = "SELECT no_such_column FROM job_runs WHERE '' = ?"
		_, _, err := (&store{db: b.db, q: &broken, d: b.d}).claim(b.ctx(), b.request(1, "j"))
		require.Error(b.t, err)
		_, err = b.locks().Get(b.ctx(), "j")
		require.ErrorIs(b.t, err, locking.ErrNotFound, "a lock without a run is never left behind")
	})
}

func TestTwoClaimersNeverShareARun(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		const n = 60
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("job-%02d", i))
			b.put(b.due(named(names[i], nil)(b.t), time.Second))
		}
		type result struct {
			won []claimed
			err error
		}
		results := make(chan result)
		for range 3 {
			go func() {
				var all []claimed
				for {
					won, _, err := b.claim(b.ctx(), b.request(7, names...))
					all = append(all, won...)
					if err != nil || len(won) == 0 {
						results <- result{all, err}
						return
					}
				}
			}()
		}
		seen := map[int64]bool{}
		for range 3 {
			r := <-results
			require.NoError(b.t, r.err)
			for _, c := range r.won {
				assert.False(b.t, seen[c.run.ID], "run %d was claimed twice", c.run.ID)
				seen[c.run.ID] = true
			}
		}
		assert.Len(b.t, seen, n)
	})
}
