package lockingtest_test

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

// mutants are the mistakes that the checker must find, by what it says about them.
func mutants(ctx context.Context) map[string]*lockingtest.Mutant {
	calls := lockingtest.Calls{Ctx: ctx}
	acquire, renew, holder := calls.Acquire, calls.Renew, calls.Holder
	var mu sync.Mutex
	given := map[string]int64{}
	return map[string]*lockingtest.Mutant{
		"double grant: while": {OnAcquire: func(s locking.Store, q locking.AcquireRequest) (locking.AcquireResult, error) {
			if r, err := s.Get(ctx, q.Resource); err == nil && r.Owner != q.Owner {
				_, err = s.ForceRelease(ctx, locking.Force{Resource: q.Resource, FencingToken: r.FencingToken, Immediate: true})
				if err != nil {
					return locking.AcquireResult{}, err
				}
			}
			return acquire(s, q)
		}},
		"grant without the grace: while": {OnAcquire: func(s locking.Store, q locking.AcquireRequest) (locking.AcquireResult, error) {
			q.Grace = 0
			return acquire(s, q)
		}},
		"new token for the same grant: while": {OnAcquire: func(s locking.Store, q locking.AcquireRequest) (locking.AcquireResult, error) {
			if r, err := s.Get(ctx, q.Resource); err == nil && r.Owner == q.Owner {
				_, err = s.Release(ctx, []locking.Claim{{Resource: q.Resource, Owner: q.Owner}})
				if err != nil {
					return locking.AcquireResult{}, err
				}
			}
			return acquire(s, q)
		}},
		"token reuse: is of": {OnAcquire: func(s locking.Store, q locking.AcquireRequest) (locking.AcquireResult, error) {
			res, err := acquire(s, q)
			if res.Acquired {
				res.Record.FencingToken = (res.Record.FencingToken + 1) / 2
			}
			return res, err
		}},
		"tokens that fall: after the higher token": {OnAcquire: func(s locking.Store, q locking.AcquireRequest) (locking.AcquireResult, error) {
			res, err := acquire(s, q)
			if res.Acquired {
				res.Record.FencingToken = math.MaxInt32 - res.Record.FencingToken
			}
			return res, err
		}},
		"busy although free: not in the way": {OnAcquire: func(s locking.Store, q locking.AcquireRequest) (locking.AcquireResult, error) {
			res, err := acquire(s, q)
			mu.Lock()
			defer mu.Unlock()
			if given[q.Resource]++; res.Acquired && given[q.Resource]%10 == 0 {
				return locking.AcquireResult{Record: res.Record}, err
			}
			return res, err
		}},
		"renew without owner check: and the row is of": {OnRenew: func(s locking.Store, c locking.Claim) (locking.ClaimResult, error) {
			return renew(s, holder(s, c))
		}},
		"lying row count: after its end": {OnRenew: func(s locking.Store, c locking.Claim) (locking.ClaimResult, error) {
			res, err := renew(s, c)
			now, nowErr := s.Now(ctx)
			if res.Err != nil && nowErr == nil && c.FencingToken != 0 && c.Owner != "stranger" {
				return locking.ClaimResult{Record: locking.Record{
					Resource: c.Resource, Owner: c.Owner, FencingToken: c.FencingToken,
					RenewedAt: now, ExpiresAt: now.Add(c.TTL), Now: now,
				}}, err
			}
			return res, err
		}},
		"answers of the neighbor: and the row is of": {OnRenew: func(s locking.Store, c locking.Claim) (locking.ClaimResult, error) {
			mine, err := renew(s, c) // as a connection whose answers are shifted by one
			if all, listErr := s.List(ctx, locking.ListFilter{}); listErr == nil && len(all) > 0 {
				return locking.ClaimResult{Record: all[0]}, err
			}
			return mine, err
		}},
		"release without owner check: and the row is of": {OnRelease: func(s locking.Store, c locking.Claim) (locking.ClaimResult, error) {
			res, err := s.Release(ctx, []locking.Claim{holder(s, c)})
			if err != nil {
				return locking.ClaimResult{}, err
			}
			return res[0], nil
		}},
		"silent release by a stranger: while": {OnRelease: func(s locking.Store, c locking.Claim) (locking.ClaimResult, error) {
			_, err := s.Release(ctx, []locking.Claim{holder(s, c)})
			return locking.ClaimResult{Err: locking.ErrNotOwner}, err
		}},
	}
}

func TestCheckerFindsEachMutant(t *testing.T) {
	t.Parallel()
	for name := range mutants(t.Context()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, sentence, _ := strings.Cut(name, ": ")
				var problems string
				for seed := uint64(1); seed <= 5 && !strings.Contains(problems, sentence); seed++ {
					m := mutants(t.Context())[name]
					m.Store = lockingtest.NewMemory(time.Now)
					h := lockingtest.Record(m)
					_, err := lockingtest.Storm(t.Context(), lockingtest.StormConfig{Store: h, Pause: time.Sleep, Seed: seed})
					require.NoError(t, err)
					problems = strings.Join(h.Check(), "\n")
				}
				assert.Contains(t, problems, sentence)
			})
		})
	}
}

func TestCheckerIsContentWithTheRightStore(t *testing.T) {
	t.Parallel()
	var sum lockingtest.Stats
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			h := lockingtest.Record(lockingtest.NewMemory(time.Now))
			stats, err := lockingtest.Storm(t.Context(), lockingtest.StormConfig{Store: h, Pause: time.Sleep, Seed: seed})
			require.NoError(t, err)
			assert.Empty(t, h.Check())
			assert.Positive(t, stats.Takeovers)
			assert.Positive(t, stats.ZombiesRefused)
			sum.Extensions += stats.Extensions
			sum.Losses += stats.Losses
		})
	}
	assert.Positive(t, sum.Extensions)
	assert.Positive(t, sum.Losses)
}

func TestRegister(t *testing.T) {
	t.Parallel()
	var r lockingtest.Register
	assert.True(t, r.Write(3, "a"))
	assert.True(t, r.Write(3, "b"))
	assert.False(t, r.Write(2, "zombie"))
	assert.True(t, r.Write(7, "c"))
	assert.Equal(t, "c", r.Value())
	assert.Equal(t, []int64{3, 3, 7}, r.Accepted())
}
