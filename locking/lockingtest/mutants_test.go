package lockingtest_test

import (
	"context"
	"errors"
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
				// Between the two calls the holder may have gone, and another one come: that is no error of the store.
				if err != nil && !errors.Is(err, locking.ErrStaleToken) && !errors.Is(err, locking.ErrNotFound) {
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

// script makes calls one after another, in a bubble.
type script struct {
	*testing.T

	store locking.Store
	calls lockingtest.Calls
}

// life is the TTL of each grant of a script.
const life = time.Second

// acquire returns the token that the answer names, whether it is a grant or not.
func (s *script) acquire(owner, resource string, grace time.Duration) (token int64) {
	s.Helper()
	res, err := s.calls.Acquire(s.store, locking.AcquireRequest{Resource: resource, Owner: owner, TTL: life, Grace: grace})
	require.NoError(s, err)
	return res.Record.FencingToken
}

// renew and release are told what the store makes of them: that is what some mutants lie about.
func (s *script) renew(owner, resource string, token int64) {
	s.Helper()
	_, err := s.calls.Renew(s.store, locking.Claim{Resource: resource, Owner: owner, FencingToken: token, TTL: life})
	require.NoError(s, err)
}

func (s *script) release(owner, resource string) {
	s.Helper()
	_, err := s.calls.Release(s.store, locking.Claim{Resource: resource, Owner: owner})
	require.NoError(s, err)
}

// provocations are the few calls that each mutant cannot answer without giving itself away.
func provocations() map[string]func(s *script) {
	twoOwners := func(s *script) {
		s.acquire("A", "a", 0)
		time.Sleep(life / 2)
		s.release("A", "a")
		s.acquire("B", "a", 0)
	}
	return map[string]func(s *script){
		"double grant: while": func(s *script) {
			s.acquire("A", "a", 0)
			s.acquire("B", "a", 0)
		},
		"grant without the grace: while": func(s *script) {
			s.acquire("A", "a", 0)
			time.Sleep(life + time.Millisecond)
			s.acquire("B", "a", life)
		},
		"new token for the same grant: while": func(s *script) {
			s.acquire("A", "a", 0)
			s.acquire("A", "a", 0)
		},
		"token reuse: is of":                       twoOwners,
		"tokens that fall: after the higher token": twoOwners,
		"busy although free: not in the way": func(s *script) {
			for range 10 {
				s.acquire("A", "a", 0)
			}
		},
		"renew without owner check: and the row is of": func(s *script) {
			s.acquire("A", "a", 0)
			s.renew("stranger", "a", 0)
		},
		"lying row count: after its end": func(s *script) {
			token := s.acquire("A", "a", 0)
			time.Sleep(life + time.Millisecond)
			s.renew("A", "a", token)
		},
		"answers of the neighbor: and the row is of": func(s *script) {
			s.acquire("A", "a", 0)
			s.renew("A", "b", s.acquire("A", "b", 0))
		},
		"release without owner check: and the row is of": func(s *script) {
			s.acquire("A", "a", 0)
			s.release("stranger", "a")
		},
		"silent release by a stranger: while": func(s *script) {
			s.acquire("A", "a", 0)
			s.release("stranger", "a")
			s.acquire("B", "a", 0)
		},
	}
}

// What the checker knows does not depend on what a storm happens to do. The same calls to the right store are right.
func TestCheckerFindsEachMutant(t *testing.T) {
	t.Parallel()
	scripts := provocations()
	for name := range mutants(t.Context()) {
		_, sentence, _ := strings.Cut(name, ": ")
		require.Contains(t, scripts, name)
		problemsOf := func(t *testing.T, store locking.Store) string {
			t.Helper()
			h := lockingtest.Record(store)
			scripts[name](&script{T: t, store: h, calls: lockingtest.Calls{Ctx: t.Context()}})
			return strings.Join(h.Check(), "\n")
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := mutants(t.Context())[name]
				m.Store = lockingtest.NewMemory(time.Now)
				assert.Contains(t, problemsOf(t, m), sentence)
				assert.Empty(t, problemsOf(t, lockingtest.NewMemory(time.Now)))
			})
		})
	}
}

// One storm finds nearly each of them, whatever its seed is; the search ends with the first that does.
func TestStormMeetsEachMutant(t *testing.T) {
	t.Parallel()
	for name := range mutants(t.Context()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, sentence, _ := strings.Cut(name, ": ")
			var problems string
			for seed := uint64(1); seed <= 100 && !strings.Contains(problems, sentence); seed++ {
				synctest.Test(t, func(t *testing.T) {
					m := mutants(t.Context())[name]
					m.Store = lockingtest.NewMemory(time.Now)
					h := lockingtest.Record(m)
					_, err := lockingtest.Storm(t.Context(), lockingtest.StormConfig{Store: h, Pause: time.Sleep, Seed: seed})
					require.NoError(t, err)
					problems = strings.Join(h.Check(), "\n")
				})
			}
			assert.Contains(t, problems, sentence)
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
