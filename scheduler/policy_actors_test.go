package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// actor is one replica.
type actor struct {
	name    string
	db      *database.DB
	leave   context.CancelFunc
	left    sync.WaitGroup
	crashed bool
	err     error // of its loop; valid when it has left
}

// join starts a replica, with a connection of its own.
func (s *stage) join(name string) {
	s.t.Helper()
	s.joined++
	a := &actor{name: name, db: dbtest.Open(s.t, s.url)}
	store, err := locking.NewStore(a.db.Main)
	require.NoError(s.t, err)
	boot := func() time.Duration { return time.Since(s.began) }
	keeper, err := locking.NewKeeper(locking.KeeperConfig{Store: store, Boot: boot, Jitter: func() float64 { return 0 }})
	require.NoError(s.t, err)
	o := Options{
		DB: a.db.Main, Keeper: keeper, Start: s.start, Jobs: s.known, Replica: name, Host: "h", PID: s.joined,
		Nonce: fmt.Sprint(name, s.joined), Version: "1", Labels: s.c.labels[name], Capacity: cmp.Or(s.c.capacity, 8), TTL: locking.DefaultTTL,
		Log: zap.NewNop(), Audit: zap.NewNop(), Boot: boot, Wall: time.Now, Observe: []Observer{&s.counted},
	}
	loop, err := New(o)
	require.NoError(s.t, err)
	ctx, leave := context.WithCancel(context.WithoutCancel(s.t.Context()))
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(s.t.Context()))
	a.leave = leave
	a.left.Go(func() { _ = keeper.Run(keeping) }) // it has no error but that of a second call
	a.left.Go(func() { defer stopKeeping(); a.err = loop.Run(ctx) })
	s.actors = append(s.actors, a)
}

// start is the StartFunc of every replica.
func (s *stage) start(_ context.Context, a jobs.Attempt) (Process, error) {
	w := work{takes: 5 * time.Second}
	if s.c.work != nil {
		w = s.c.work(&a)
	}
	if w.refused != nil {
		return nil, w.refused
	}
	p := &actedProcess{dies: a.Job.KillAfter, done: make(chan struct{})}
	end := jobs.Result{Cause: jobs.CauseExited, ExitCode: w.code}
	if w.end != nil {
		end = *w.end
	}
	if limit := a.Job.Timeout; limit > 0 && limit < w.takes { // a supervisor's part
		w.takes, end = limit, jobs.Result{Cause: jobs.CauseTimeout, Signal: "SIGTERM"}
	}
	p.timer = time.AfterFunc(w.takes, func() { p.end(end) })
	return p, nil
}

// actedProcess ends when its time is over. It ignores SIGTERM, so the request to end takes the whole of kill_after.
type actedProcess struct {
	timer  *time.Timer
	dies   time.Duration
	once   sync.Once
	done   chan struct{}
	result jobs.Result
}

func (p *actedProcess) Extend(_, _ time.Duration) {}
func (p *actedProcess) Done() <-chan struct{}     { return p.done }
func (p *actedProcess) Result() jobs.Result       { return p.result }

func (p *actedProcess) Stop() {
	p.timer.Stop()
	time.AfterFunc(p.dies, func() { p.end(jobs.Result{Cause: jobs.CauseStopped, Signal: "SIGTERM"}) })
}

func (p *actedProcess) end(r jobs.Result) {
	p.once.Do(func() {
		p.result = r
		close(p.done)
	})
}

func (s *stage) leaves(name string) {
	s.t.Helper()
	i := slices.IndexFunc(s.actors, func(a *actor) bool { return a.name == name })
	a := s.actors[i]
	s.actors = slices.Delete(s.actors, i, i+1)
	a.leave()
	a.left.Wait()
	if !a.crashed {
		require.NoError(s.t, a.err)
	}
}

// What can happen in a story.

func leave(at time.Duration, name string) step { return step{at, func(s *stage) { s.leaves(name) }} }
func join(at time.Duration, name string) step  { return step{at, func(s *stage) { s.join(name) }} }

// crash takes the database away from a replica, for ever: to the others it is dead.
func crash(at time.Duration, name string) step {
	return step{at, func(s *stage) {
		i := slices.IndexFunc(s.actors, func(a *actor) bool { return a.name == name })
		s.actors[i].crashed = true
		require.NoError(s.t, s.actors[i].db.Close())
	}}
}

// trigger asks for a manual run of the first job.
func trigger(at time.Duration, id string) step {
	return step{at, func(s *stage) {
		actions, err := OpenActions(s.db.Main, &s.counted)
		require.NoError(s.t, err)
		_, created, err := actions.Start(s.t.Context(), StartRequest{Job: s.known[0], RequestID: id, By: "test"})
		require.NoError(s.t, err)
		require.True(s.t, created)
	}}
}

// lock lets a client hold the resource job.
func lock(at, ttl time.Duration) step {
	return step{at, func(s *stage) {
		store, err := locking.NewStore(s.db.Main)
		require.NoError(s.t, err)
		res, err := store.Acquire(s.t.Context(), []locking.AcquireRequest{{Resource: "job", Owner: "client", TTL: ttl}})
		require.NoError(s.t, err)
		require.True(s.t, res[0].Acquired)
	}}
}

func pause(at time.Duration, r PauseRequest) step {
	return step{at, func(s *stage) {
		pauses, err := OpenPauses(s.db.Main)
		require.NoError(s.t, err)
		_, err = pauses.Pause(s.t.Context(), r)
		require.NoError(s.t, err)
	}}
}

func resume(at time.Duration, job string) step {
	return step{at, func(s *stage) {
		pauses, err := OpenPauses(s.db.Main)
		require.NoError(s.t, err)
		resumed, err := pauses.Resume(s.t.Context(), []string{job}, "test")
		require.NoError(s.t, err)
		require.Len(s.t, resumed, 1)
	}}
}
