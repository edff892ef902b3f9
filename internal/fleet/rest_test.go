package fleet

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// History is everything that is known about a fleet at rest.
type History struct {
	Runs   []jobs.Run
	Events []record.Event
}

// Rest brings the fleet to a quiet phase, judges its history with every checker that holds for any fleet, and returns
// it. Daemons that make new work (because jobs have schedules) leave first, and one with the same jobs but without
// schedules does what is left.
func (f *Fleet) Rest() History {
	f.tb.Helper()
	if slices.ContainsFunc(f.settings.Jobs, func(j Job) bool { return j.Schedule != "" }) {
		f.LeaveAll()
		f.Configure(f.settings.withoutSchedules())
		f.StartReady("rest")
	}
	f.waitForRest()
	f.locksAreFree()
	f.LeaveAll()
	h := History{f.Runs(), f.Events()}
	f.judge(h)
	return h
}

// LeaveAll asks all living daemons to leave at the same time.
func (f *Fleet) LeaveAll() {
	f.tb.Helper()
	living := slices.DeleteFunc(f.Replicas(), (*Replica).Ended)
	for _, r := range living {
		r.Signal(syscall.SIGTERM)
	}
	for _, r := range living {
		r.leaves(2 * patience)
	}
}

func (f *Fleet) waitForRest() {
	f.tb.Helper()
	until(f.tb, "nothing is pending or running, and no process of any job is alive", 2*patience, func() bool {
		return f.count(`state IN ('pending', 'running')`) == 0 && len(f.JobProcesses()) == 0
	})
}

// count is how many runs meet a condition: cheaper than reading them. -1 is a database that does not answer.
func (f *Fleet) count(where string, args ...any) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var n int
	if err := f.DB.Main.NewRaw(`SELECT count(*) FROM job_runs WHERE `+where, args...).Scan(ctx, &n); err != nil {
		return -1
	}
	return n
}

// locksAreFree takes and gives back the lock of every resource that a run ever had: none may be left behind.
func (f *Fleet) locksAreFree() {
	f.tb.Helper()
	taken := map[string]bool{}
	for _, r := range f.Runs() {
		if !taken[r.Resource] && r.FencingToken != 0 {
			f.Take(r.Resource, time.Minute).Release()
			taken[r.Resource] = true
		}
	}
}

// Client is a lock that the test itself holds, as a client of the locking API does.
type Client struct {
	f      *Fleet
	store  locking.Store
	record locking.Record
}

// clientTTL is how long a client may hold a lock that it does not renew: longer than any test takes.
const clientTTL = time.Hour

// Take acquires a resource as soon as it is free, which it must be within a TTL and a bit.
func (f *Fleet) Take(resource string, ttl time.Duration) *Client {
	f.tb.Helper()
	c := &Client{f: f}
	var err error
	c.store, err = locking.NewStore(f.DB.Main)
	f.must(err)
	owner := locking.NewOwner()
	until(f.tb, "the lock of "+resource+" is free", orElse(f.settings.TTL, locking.DefaultTTL)+patience, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		res, err := c.store.Acquire(ctx, []locking.AcquireRequest{{Resource: resource, Owner: owner, TTL: ttl}})
		if err != nil || !res[0].Acquired {
			return false
		}
		c.record = res[0].Record
		return true
	})
	return c
}

// Release gives it back.
func (c *Client) Release() {
	c.f.tb.Helper()
	claim := locking.Claim{Resource: c.record.Resource, Owner: c.record.Owner, FencingToken: c.record.FencingToken}
	until(c.f.tb, "the lock is given back", patience, func() bool {
		res, err := c.store.Release(c.f.tb.Context(), []locking.Claim{claim})
		if database.Retryable(err) {
			return false
		}
		if err == nil {
			err = res[0].Err
		}
		c.f.must(err)
		return true
	})
}

// judge applies every checker that holds whatever was done to the fleet.
func (f *Fleet) judge(h History) {
	f.tb.Helper()
	registers, err := record.Registers(f.dir)
	errs := []error{
		err, check.Exclusive(h.Events), check.Starts(h.Runs, h.Events), check.Tokens(h.Runs), check.Finished(h.Runs),
		check.Attempts(h.Runs),
	}
	for _, writes := range registers {
		errs = append(errs, check.Register(writes))
	}
	for _, r := range f.Replicas() {
		errs = append(errs, check.Log(r.Log(), passwordCanary, environCanary))
	}
	if err := errors.Join(errs...); err != nil {
		f.tb.Errorf("the history is wrong:\n%v", err)
	}
}
