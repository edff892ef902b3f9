package linear_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/linear"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

// mutants are what the checker must find.
func mutants(ctx context.Context) map[string]*lockingtest.Mutant {
	calls := lockingtest.Calls{Ctx: ctx}
	acquire, renew, holder := calls.Acquire, calls.Renew, calls.Holder
	release := calls.Release
	return map[string]*lockingtest.Mutant{
		"double grant": {OnAcquire: func(s locking.Store, q locking.AcquireRequest) (locking.AcquireResult, error) {
			res, err := acquire(s, q)
			if err == nil && !res.Acquired { // the look and the write are two steps, and the look was too early
				_, err = s.Release(ctx, []locking.Claim{{Resource: q.Resource, Owner: res.Record.Owner}})
				if err == nil {
					return acquire(s, q)
				}
			}
			return res, err
		}},
		"renew without owner check": {OnRenew: func(s locking.Store, c locking.Claim) (locking.ClaimResult, error) {
			return renew(s, holder(s, c))
		}},
		"renew that revives an expired lock": {OnRenew: func(s locking.Store, c locking.Claim) (locking.ClaimResult, error) {
			res, err := renew(s, c)
			if err == nil && res.Err != nil && c.Owner != "a stranger" {
				res.Err = nil
				res.Record.Owner, res.Record.FencingToken = c.Owner, c.FencingToken
				res.Record.ExpiresAt = time.Now().Add(c.TTL)
			}
			return res, err
		}},
		"renew that changes nothing": {OnRenew: func(s locking.Store, c locking.Claim) (locking.ClaimResult, error) {
			r, err := s.Get(ctx, c.Resource)
			if err != nil && !errors.Is(err, locking.ErrNotFound) {
				return locking.ClaimResult{}, err
			}
			if r.Owner != c.Owner || c.FencingToken != 0 && r.FencingToken != c.FencingToken {
				return locking.ClaimResult{Err: locking.ErrLost}, nil
			}
			r.ExpiresAt = r.Now.Add(c.TTL)
			return locking.ClaimResult{Record: r}, nil
		}},
		"lying row count: one renewal in ten says it did nothing": {OnRenew: every10th(renew, func(s locking.Store, c locking.Claim) (locking.ClaimResult, error) {
			res, err := renew(s, c)
			if err == nil && res.Err == nil {
				res.Err = locking.ErrLost
			}
			return res, err
		})},
		"lying row count: one release in ten did nothing": {OnRelease: every10th(release, func(locking.Store, locking.Claim) (locking.ClaimResult, error) {
			return locking.ClaimResult{}, nil
		})},
		"lying row count: one release in ten says it did nothing": {OnRelease: every10th(release, func(s locking.Store, c locking.Claim) (locking.ClaimResult, error) {
			res, err := release(s, c)
			if err == nil && res.Err == nil {
				res.Err = locking.ErrNotFound
			}
			return res, err
		})},
		"release without owner check": {OnRelease: func(s locking.Store, c locking.Claim) (locking.ClaimResult, error) {
			return release(s, holder(s, c))
		}},
		"token reuse": {OnAcquire: func(s locking.Store, q locking.AcquireRequest) (locking.AcquireResult, error) {
			res, err := acquire(s, q)
			if res.Acquired {
				res.Record.FencingToken = (res.Record.FencingToken + 1) / 2
			}
			return res, err
		}},
		"new token for the same grant": {OnAcquire: func(s locking.Store, q locking.AcquireRequest) (locking.AcquireResult, error) {
			if r, err := s.Get(ctx, q.Resource); err == nil && r.Owner == q.Owner && r.ReleasedAt == nil {
				if _, err := release(s, locking.Claim{Resource: q.Resource, Owner: q.Owner}); err != nil {
					return locking.AcquireResult{}, err
				}
			}
			return acquire(s, q)
		}},
		"busy although free": {OnAcquire: func(s locking.Store, q locking.AcquireRequest) (locking.AcquireResult, error) {
			r, err := s.Get(ctx, q.Resource)
			if err == nil {
				return locking.AcquireResult{Record: r}, nil
			}
			res, err := acquire(s, q)
			if err == nil && res.Acquired && res.Record.FencingToken%10 == 0 {
				_, err = release(s, locking.Claim{Resource: q.Resource, Owner: q.Owner})
				return locking.AcquireResult{Record: locking.Record{Resource: q.Resource}}, err
			}
			return res, err
		}},
	}
}

func every10th(right, wrong func(locking.Store, locking.Claim) (locking.ClaimResult, error)) func(locking.Store, locking.Claim) (locking.ClaimResult, error) {
	turn := make(chan int, 1)
	turn <- 0
	return func(s locking.Store, c locking.Claim) (locking.ClaimResult, error) {
		n := <-turn
		turn <- n + 1
		if n%10 == 9 {
			return wrong(s, c)
		}
		return right(s, c)
	}
}

// slow is a table that is far away, in a bubble: calls overlap, and locks expire.
type slow struct{ locking.Store }

func (s slow) pause() { time.Sleep(time.Duration(rand.Int64N(int64(time.Millisecond)))) }

func (s slow) Acquire(ctx context.Context, reqs []locking.AcquireRequest) ([]locking.AcquireResult, error) {
	s.pause()
	defer s.pause()
	return s.Store.Acquire(ctx, reqs)
}

func (s slow) Renew(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
	s.pause()
	defer s.pause()
	return s.Store.Renew(ctx, claims)
}

func (s slow) Release(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
	s.pause()
	defer s.pause()
	return s.Store.Release(ctx, claims)
}

// driveInBubble drives clients in simulated time.
func driveInBubble(t *testing.T, s locking.Store, seed uint64) (history *linear.History, stats linear.Stats) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		history, stats, err = linear.Drive(t.Context(), linear.Config{
			Stores: []locking.Store{s}, Calls: 300, Segment: 25, TTL: 30 * time.Millisecond, Seed: seed,
		})
		require.NoError(t, err)
	})
	return history, stats
}

// The same checker that is content with the databases finds each of these, mostly in the first few hundred calls.
func TestCheckerFindsEachMutant(t *testing.T) {
	t.Parallel()
	for name := range mutants(t.Context()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var problems []string
			for seed := uint64(0); seed < 100 && len(problems) == 0; seed++ { // a small lie need not matter in each history
				m := mutants(t.Context())[name]
				m.Store = slow{lockingtest.NewMemory(time.Now)}
				history, _ := driveInBubble(t, m, seed)
				problems = history.Check(decided)
			}
			require.NotEmpty(t, problems)
			for _, problem := range problems {
				assert.Contains(t, problem, "no order explains")
			}
		})
	}
}

func TestCheckerIsContentWithTheRightStore(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		history, stats := driveInBubble(t, slow{lockingtest.NewMemory(time.Now)}, seed)
		assert.Empty(t, history.Check(decided))
		assert.Positive(t, stats["get not found"])
	}
}
