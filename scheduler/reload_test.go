package scheduler

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

const (
	// patience is how long a test waits for something that will be.
	patience = time.Minute
	// unitTTL is longer than any test: no lock of a unit is lost meanwhile, and its row is not written by its beat.
	unitTTL = time.Hour
)

// attempt is a process that lives until the test ends it.
type attempt struct {
	jobs.Attempt

	over chan struct{}
	once sync.Once
}

func (*attempt) Extend(_, _ time.Duration) {}
func (a *attempt) Stop()                   { a.once.Do(func() { close(a.over) }) }
func (a *attempt) Done() <-chan struct{}   { return a.over }
func (*attempt) Result() jobs.Result       { return jobs.Result{Cause: jobs.CauseExited} }

// unit is a scheduler whose processes are the test's.
type unit struct {
	*Scheduler
	*bench

	started chan *attempt
}

func (b *bench) unit(hash string, known ...*jobs.Job) *unit {
	u := &unit{bench: b, started: make(chan *attempt, 100)}
	keeper, err := locking.NewKeeper(locking.KeeperConfig{Store: b.locks(), TTL: unitTTL, Logger: zap.NewNop(), Audit: zap.NewNop()})
	require.NoError(b.t, err)
	u.Scheduler, err = New(Options{
		DB: b.db, Keeper: keeper, Jobs: known, DefinitionsHash: hash, Replica: "a", Host: "h", PID: 1, Nonce: "n", Version: "v",
		Start: func(_ context.Context, a jobs.Attempt) (Process, error) {
			p := &attempt{Attempt: a, over: make(chan struct{})}
			u.started <- p
			return p, nil
		},
		Capacity: 10, TTL: unitTTL, DrainTimeout: 10 * time.Second, Log: zap.NewNop(), Audit: zap.NewNop(), Boot: boottime.Now, Wall: time.Now,
	})
	require.NoError(b.t, err)
	return u
}

// run is the loop, until the returned function ends it. That leaving is clean is what the stories say, where no machine is slow.
func (u *unit) run() (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := u.Run(ctx); err != nil {
			u.t.Log("leaving:", err)
		}
	})
	return func() { cancel(); wg.Wait() }
}

// begins waits for the process that is started next.
func (u *unit) begins() *attempt {
	select {
	case a := <-u.started:
		return a
	case <-time.After(patience):
		require.Fail(u.t, "nothing was started")
		return nil
	}
}

func (u *unit) becomes(what string, condition func() bool) {
	require.Eventually(u.t, condition, patience, 10*time.Millisecond, what)
}

func (u *unit) publishedHash() (hash string) {
	require.NoError(u.t, u.bench.db.NewRaw("SELECT coalesce(max(definitions_hash), '') FROM replicas").Scan(u.ctx(), &hash))
	return hash
}

func TestAReloadKeepsWhatRuns(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		old := named("works", func(j *jobs.Job) { j.Schedule, j.Timeout = nil, time.Minute })(b.t)
		changed := named("works", func(j *jobs.Job) { j.Schedule, j.Timeout, j.Overlap = nil, time.Hour, jobs.OverlapQueue })(b.t)
		removed := named("goes", func(j *jobs.Job) { j.Schedule = nil })(b.t)
		u := b.unit("one", old, removed)
		defer u.run()()
		first := b.put(b.due(old, 3*time.Second))[0]
		running := u.begins()
		require.Equal(b.t, first.ID, running.Run.ID)

		u.Reload([]*jobs.Job{changed}, "two")
		u.becomes("the others see the new hash without waiting for a beat", func() bool { return u.publishedHash() == "two" })
		assert.Same(b.t, old, running.Job)
		assert.Equal(b.t, jobs.StateRunning, b.get(first.ID).State, "a reload waits for no run and ends none")

		orphan := b.put(b.due(removed, 2*time.Second))[0]
		running.Stop()
		u.becomes("the run ends as it would have", func() bool { return b.get(first.ID).Outcome == jobs.OutcomeSucceeded })
		b.put(b.due(changed, time.Second))
		next := u.begins()
		assert.Same(b.t, changed, next.Job, "what is claimed later has the new definition")
		next.Stop()
		assert.Equal(b.t, jobs.StatePending, b.get(orphan.ID).State, "it stays for the replicas that know it")

		u.Reload([]*jobs.Job{removed, changed}, "three")
		back := u.begins()
		assert.Equal(b.t, orphan.ID, back.Run.ID, "a job that is known again is no longer left out")
		back.Stop()
	})
}

// A claim whose commit was not answered is settled with the definition that it was made with.
func TestAReloadKeepsTheDefinitionOfAnUnansweredClaim(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("gone", func(j *jobs.Job) { j.Schedule = nil })(b.t)
		u := b.unit("one", j)
		b.put(b.due(j, time.Second))
		won := b.mustClaim(1, j.Name)
		require.Len(b.t, won, 1)
		won[0].job = j
		u.maybe = won
		u.Reload(nil, "two")
		require.NoError(b.t, u.adopt(b.ctx()))
		require.NoError(b.t, u.settleUnknown(b.ctx()))
		a := u.begins()
		assert.Same(b.t, j, a.Job)
		a.Stop()
		u.active.wg.Wait()
	})
}

func TestAReloadKeepsThePositionsOfUnchangedSchedules(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		hourly, err := jobs.ParseSchedule("@hourly", jobs.ScheduleOptions{})
		require.NoError(b.t, err)
		same, other := named("same", nil), named("other", nil)
		u := b.unit("one", same(b.t), other(b.t))
		require.NoError(b.t, u.work(b.ctx()))
		position := u.plans[0].position
		require.False(b.t, position.IsZero())

		again := same(b.t)
		u.Reload([]*jobs.Job{again}, "two")
		u.adopts("two")
		require.Len(b.t, u.plans, 1)
		assert.Same(b.t, again, u.plans[0].job)
		assert.Equal(b.t, position, u.plans[0].position)
		assert.False(b.t, u.plans[0].next.IsZero())

		changed := named("same", func(j *jobs.Job) { j.Schedule = hourly })(b.t)
		before := b.clock()
		u.Reload([]*jobs.Job{changed}, "three")
		u.adopts("three")
		assert.False(b.t, u.plans[0].position.Before(before), "another schedule begins now")
		assert.True(b.t, u.loaded)
	})
}

// adopts asks for the new definitions until they are the known ones, as the loop does: while the clock stands where an old
// schedule was planned last, they have to wait.
func (u *unit) adopts(hash string) {
	u.becomes("the new jobs are adopted", func() bool {
		require.NoError(u.t, u.adopt(u.ctx()))
		return u.known.Load().hash == hash
	})
}

// back sets the stored position of the plan back, as if nobody had planned since then.
func (u *unit) back(p *planned, by time.Duration) {
	p.moveTo(p.position.Add(-by))
	const update = "UPDATE plan_positions SET position = ? WHERE job = ? AND schedule_hash = ?"
	_, err := u.bench.db.NewRaw(update, dbtime.Arg(u.d, p.position), p.job.Name, p.hash).Exec(u.ctx())
	require.NoError(u.t, err)
}

// P6: what fell due under a schedule, and was not planned yet when it is replaced or removed, is planned.
func TestAReloadLosesNoInstant(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		everySecond, err := jobs.ParseSchedule("* * * * * *", jobs.ScheduleOptions{Seconds: true})
		require.NoError(b.t, err)
		other, err := jobs.ParseSchedule("@every 1s", jobs.ScheduleOptions{})
		require.NoError(b.t, err)
		require.NotEqual(b.t, everySecond.Hash(), other.Hash())
		with := func(name string, s *jobs.Schedule) *jobs.Job {
			return named(name, func(j *jobs.Job) { j.Schedule = s })(b.t)
		}
		u := b.unit("one", with("changes", everySecond), with("goes", everySecond))
		require.NoError(b.t, u.work(b.ctx()))
		from := u.plans[0].position
		for _, p := range u.plans {
			u.back(p, 10*time.Second)
		}
		u.Reload([]*jobs.Job{with("changes", other)}, "two")
		u.adopts("two")
		rows := map[string]map[time.Time]int{"changes": {}, "goes": {}}
		for _, r := range u.all() {
			rows[r.Job][r.ScheduledAt]++
		}
		begins := u.plans[0].position
		for _, job := range []string{"changes", "goes"} {
			for _, at := range everySecondIn(from.Add(-10*time.Second), begins) {
				assert.Equal(b.t, 1, rows[job][at], "%s at %s", job, at)
			}
		}
	})
}

func (u *unit) all() []jobs.Run {
	l, err := jobs.OpenLedger(u.db)
	require.NoError(u.t, err)
	runs, err := l.List(u.ctx(), jobs.RunFilter{Limit: 1000})
	require.NoError(u.t, err)
	return runs
}

// everySecondIn are the whole seconds after from, up to until.
func everySecondIn(from, until time.Time) (all []time.Time) {
	for at := from.Truncate(time.Second).Add(time.Second); !at.After(until); at = at.Add(time.Second) {
		all = append(all, at)
	}
	return all
}

// A schedule that another replica plans at this moment is handed over by the next tick.
func TestAReloadWaitsForAPlanner(t *testing.T) {
	t.Parallel()
	b := open(t, dbtest.Postgres(t))
	u := b.unit("one", named("j", nil)(t))
	require.NoError(t, u.work(t.Context()))
	u.back(u.plans[0], time.Second) // the clock is certainly ahead of it
	u.Reload(nil, "two")
	require.NoError(t, b.tx(t.Context(), func(tx bun.Tx) error {
		var rows []positionRow
		if err := tx.NewRaw(b.q.lockPositions, encode(keysOf(u.plans))).Scan(t.Context(), &rows); err != nil {
			return err
		}
		require.NoError(t, u.adopt(t.Context()))
		assert.Equal(t, "one", u.known.Load().hash)
		return nil
	}))
	require.NoError(t, u.adopt(t.Context()))
	assert.Equal(t, "two", u.known.Load().hash)
	assert.Empty(t, u.plans)
}

// Without the database the old jobs stay the known ones, and Reload has returned long ago.
func TestAReloadWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		u := b.unit("one", named("j", nil)(b.t))
		require.NoError(b.t, u.work(b.ctx()))
		u.Reload(nil, "two")
		ended, cancel := context.WithCancel(b.ctx())
		cancel()
		require.Error(b.t, u.adopt(ended))
		assert.Equal(b.t, "one", u.known.Load().hash)
		assert.Len(b.t, u.plans, 1)
		u.becomes("it is adopted when the database is back", func() bool {
			require.NoError(b.t, u.work(b.ctx()))
			return u.known.Load().hash == "two"
		})
	})
}

func TestOnlyTheLastReloadCounts(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		slow := named("slow", func(j *jobs.Job) { j.KillAfter = time.Hour })(b.t)
		u := b.unit("one", slow)
		u.Reload(nil, "two")
		u.Reload([]*jobs.Job{named("j", nil)(b.t)}, "three")
		assert.Equal(b.t, "one", u.known.Load().hash, "nothing changes in the middle of a tick")
		require.NoError(b.t, u.adopt(b.ctx()))
		assert.Equal(b.t, "three", u.known.Load().hash)
		assert.True(b.t, u.runnable("j"))
		assert.False(b.t, u.runnable("slow"))
		assert.Equal(b.t, time.Hour, u.longestKill, "a run of a removed job may have to be killed in the drain")
		require.NoError(b.t, u.adopt(b.ctx()))
		assert.Equal(b.t, "three", u.known.Load().hash)
	})
}
