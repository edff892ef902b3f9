package locking_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/locking"
)

// A release and a renewal that are on their way at once: whichever the database sees first, the lock was given back
// and not lost.
func TestReleaseDuringABeatIsNoLoss(t *testing.T) {
	t.Parallel()
	for _, renewFirst := range []bool{true, false} {
		t.Run("renewed first "+strconv.FormatBool(renewFirst), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				answer := make(chan struct{})
				r.store.onRenew(func(ctx context.Context, claims []locking.Claim) (res []locking.ClaimResult, err error) {
					ctx = context.WithoutCancel(ctx) // what has been sent is executed
					if renewFirst {
						res, err = r.memory.Renew(ctx, claims)
					}
					<-answer
					if !renewFirst {
						res, err = r.memory.Renew(ctx, claims)
					}
					return res, err
				})
				l := r.acquire("a", func(g *locking.Grant) {
					g.OnExtend = func(_, _ time.Duration) { t.Error("a released lock is not extended") }
				})
				r.sleep(10 * time.Second)
				require.Equal(t, 1, r.store.renewals(), "a beat is on its way")
				require.NoError(t, l.Release(r.Context()))
				close(answer)
				r.sleep(time.Minute)
				require.ErrorIs(t, context.Cause(l.Context()), locking.ErrReleased)
				require.NoError(t, l.Release(r.Context()), "still released, and not lost")
				assert.Equal(t, 1, r.store.renewals())
				assert.Equal(t, []string{"lock.acquire", "lock.release"}, r.actions())
			})
		})
	}
}

func TestReleaseOfUnknownOutcomeMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	for _, done := range []bool{true, false} {
		t.Run("executed "+strconv.FormatBool(done), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				l := r.acquire("a", nil)
				ctx, cancel := context.WithCancel(r.Context())
				cancel()
				require.ErrorIs(t, l.Release(ctx), context.Canceled)
				require.ErrorIs(t, context.Cause(l.Context()), locking.ErrReleased, "the work is over in any case")
				if done { // the statement was executed, its answer was lost
					_, err := r.memory.Release(r.Context(), []locking.Claim{{Resource: "a", Owner: "A"}})
					require.NoError(t, err)
				}
				r.sleep(11 * time.Second)
				assert.Zero(t, r.store.renewals(), "not renewed any more")
				require.NoError(t, l.Release(r.Context()))
				assert.True(t, r.rivalGets())
			})
		})
	}
}

func TestReleaseFindsTheLockLost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		l := r.acquire("a", nil)
		_, err := r.memory.ForceRelease(r.Context(), locking.Force{
			Resource: "a", FencingToken: l.FencingToken(), Immediate: true,
		})
		require.NoError(t, err)
		require.ErrorIs(t, l.Release(r.Context()), locking.ErrLost)
		assert.Equal(t, []string{"lock.acquire", "lock.lose"}, r.actions())
	})
}

func TestForget(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		l := r.acquire("a", nil)
		l.Forget()
		l.Forget()
		require.ErrorIs(t, context.Cause(l.Context()), locking.ErrReleased)
		r.sleep(20 * time.Second)
		assert.Zero(t, r.store.renewals())
		assert.False(t, r.rivalGets(), "no statement was sent")
		assert.Equal(t, []string{"lock.acquire", "lock.release"}, r.actions())
	})
}

// The transaction that releases the lock is committed, and its answer is on its way, when a renewal finds the row gone or
// the name is granted again: that is no loss, unless the transaction was not what did it.
func TestALockThatIsClosingIsNotLost(t *testing.T) {
	t.Parallel()
	again := func(r *rig) { r.Helper(); r.acquire("a", nil) }
	renewal := func(r *rig) {
		r.Helper()
		r.sleep(2 * time.Second)
		require.Equal(r, 1, r.store.renewals())
	}
	for name, test := range map[string]struct {
		meanwhile func(r *rig)
		outcome   func(l *locking.Lock)
		cause     error
		told      []string
	}{
		"a renewal":             {renewal, (*locking.Lock).Forget, locking.ErrReleased, []string{"lock.release"}},
		"another grant":         {again, (*locking.Lock).Forget, locking.ErrReleased, []string{"lock.acquire", "lock.release"}},
		"a renewal, reopened":   {renewal, reopened, locking.ErrLost, []string{"lock.lose"}},
		"another one, reopened": {again, reopened, locking.ErrLost, []string{"lock.acquire", "lock.lose"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				l := r.acquire("a", nil)
				r.sleep(9 * time.Second)
				l.Closing()
				_, err := r.memory.Release(r.Context(), []locking.Claim{{Resource: "a", Owner: "A"}})
				require.NoError(t, err)
				test.meanwhile(r)
				require.NoError(t, l.Context().Err())
				test.outcome(l)
				require.ErrorIs(t, context.Cause(l.Context()), test.cause)
				r.sleep(time.Minute)
				assert.Equal(t, append([]string{"lock.acquire"}, test.told...), r.actions())
			})
		})
	}
}

// reopened: what comes after a loss changes nothing.
func reopened(l *locking.Lock) {
	l.Reopen()
	l.Forget()
}

// The transaction failed: the lock is held as before, and it is renewed all the time.
func TestALockThatWasNotClosed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		l := r.acquire("a", nil)
		l.Closing()
		r.sleep(time.Minute)
		l.Reopen()
		r.sleep(time.Minute)
		require.NoError(t, l.Context().Err())
		assert.Equal(t, 12, r.store.renewals())
		_, err := r.memory.ForceRelease(r.Context(), locking.Force{Resource: "a", FencingToken: l.FencingToken()})
		require.NoError(t, err)
		r.sleep(10 * time.Second)
		requireLost(t, l, locking.ReasonDatabase)
	})
}

// The watch goes on: a transaction without an answer keeps no lock beyond its lease.
func TestALockThatIsClosingForTooLong(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		l := r.acquire("a", nil)
		l.Closing()
		_, err := r.memory.Release(r.Context(), []locking.Claim{{Resource: "a", Owner: "A"}})
		require.NoError(t, err)
		r.sleepUntil(l.StopAt())
		requireLost(t, l, locking.ReasonUnconfirmed)
		l.Reopen()
		r.sleep(time.Minute)
		assert.Equal(t, []string{"lock.acquire", "lock.lose"}, r.actions())
		assert.Zero(t, r.keeper.Held())
	})
}

func TestOneRenewalForEverythingHeld(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		const n = 500
		for i := range n {
			r.acquire(fmt.Sprintf("lock %d", i), nil)
			r.sleep(20 * time.Millisecond) // 10s in all
		}
		r.sleep(30 * time.Second)
		before := r.store.renewals()
		r.sleep(100 * time.Second)
		assert.Equal(t, 10, r.store.renewals()-before, "ten beats of ten seconds")
		r.store.mu.Lock()
		defer r.store.mu.Unlock()
		assert.Len(t, r.store.calls[len(r.store.calls)-1], n)
	})
}

func TestEachLockHasItsOwnLease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		short := r.acquire("short", func(g *locking.Grant) { g.TTL = time.Second })
		long := r.acquire("long", func(g *locking.Grant) { g.TTL = time.Hour })
		r.sleep(2 * time.Minute)
		require.NoError(t, short.Context().Err())
		require.NoError(t, long.Context().Err())
		r.store.mu.Lock()
		longs := 0
		for _, claims := range r.store.calls {
			for _, c := range claims {
				if c.Resource == "long" {
					longs++
					assert.Equal(t, time.Hour, c.TTL)
				}
			}
		}
		r.store.mu.Unlock()
		assert.Equal(t, 1, longs, "a long lease joins the first beat, and not each of a short one")
		r.store.onRenew(down)
		at := short.StopAt()
		r.sleepUntil(at)
		requireLost(t, short, locking.ReasonUnconfirmed)
		r.sleep(time.Minute)
		require.NoError(t, long.Context().Err())
	})
}

// Locks come and go while beats are on their way. The race detector watches.
func TestKeepWhileBeating(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := range 50 {
					l := r.acquire(fmt.Sprintf("lock %d/%d", w, i), func(g *locking.Grant) { g.TTL = time.Second })
					time.Sleep(time.Duration(i*w) * 10 * time.Millisecond)
					assert.NoError(t, l.Context().Err())
					assert.NoError(t, l.Release(r.Context()))
				}
			})
		}
		wg.Wait()
		assert.NotContains(t, r.actions(), "lock.lose")
	})
}

func TestKeepTheSameGrantAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		l := r.acquire("a", nil)
		r.sleep(5 * time.Second)
		again := r.acquire("a", nil)
		assert.Same(t, l, again)
		assert.Equal(t, 32*time.Second, l.Deadline())
		assert.Equal(t, []string{"lock.acquire"}, r.actions())
		r.memory.Age("a", time.Hour) // it expired, and the owner got a new grant before the next beat
		newer := r.acquire("a", nil)
		assert.NotSame(t, l, newer)
		requireLost(t, l, locking.ReasonDatabase)
		require.NoError(t, newer.Context().Err())
		require.ErrorIs(t, l.Release(r.Context()), locking.ErrLost)
		assert.False(t, r.rivalGets(), "the release of the old grant does not touch the new one")
	})
}

func TestKeepWithoutRunIsWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.acquire("a", nil)
		r.sleepUntil(l.StopAt())
		requireLost(t, l, locking.ReasonUnconfirmed)
	})
}

func TestKeepTooLate(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		l := r.acquire("a", func(g *locking.Grant) { g.SentAt -= time.Minute })
		synctest.Wait()
		requireLost(t, l, locking.ReasonUnconfirmed)
		r.sleep(time.Minute)
		assert.Zero(t, r.store.renewals())
	})
}

func TestEndOfRun(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		l := r.acquire("a", nil)
		r.shutdown()
		requireLost(t, l, locking.ReasonStopped)
		late := r.acquire("b", nil)
		requireLost(t, late, locking.ReasonStopped)
		require.Error(t, r.keeper.Run(r.Context()), "a keeper runs once")
		require.NoError(t, l.Release(r.Context()), "what is still held can be released")
		require.NoError(t, late.Release(r.Context()))
		assert.True(t, r.rivalGets())
	})
}

func TestTakeoverIsAudited(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		require.True(t, r.rivalGets())
		r.sleep(bubbleTTL)
		l := r.acquire("a", nil)
		require.Len(t, r.audit.All(), 1)
		line := r.audit.All()[0]
		assert.Equal(t, "lock takeover", line.Message)
		assert.Equal(t, map[string]any{
			"event.action": "lock.takeover", "event.outcome": "success",
			"resource": "a", "owner": "A", "fencing_token": l.FencingToken(),
		}, line.ContextMap())
		require.NoError(t, l.Release(r.Context()))
	})
}

func TestKeeperRefusesBadDurations(t *testing.T) {
	t.Parallel()
	store := &faultyStore{}
	for sentence, c := range map[string]locking.KeeperConfig{
		"keeper: has no store":                                                   {},
		"TTL: is 999ms; a kept lock needs from 1s to 24h0m0s":                    {Store: store, TTL: 999 * time.Millisecond},
		"TTL: is 25h0m0s; a kept lock needs from 1s to 24h0m0s":                  {Store: store, TTL: 25 * time.Hour},
		"an attempt of 11s does not end before the next beat, 10s later":         {Store: store, Attempt: 11 * time.Second},
		"but with a TTL of 30s and a margin of 20s the holder must have stopped": {Store: store, Margin: 20 * time.Second},
		"the margin (-1s) and the attempt's timeout (3s) must be positive":       {Store: store, Margin: -time.Second},
	} {
		_, err := locking.NewKeeper(c)
		require.ErrorIs(t, err, locking.ErrInvalid)
		require.ErrorContains(t, err, sentence)
	}
}

func TestRenewals(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		l := r.acquire("a", nil)
		n, least := l.Renewals()
		assert.Zero(t, n)
		assert.Zero(t, least)
		r.sleep(45 * time.Second)
		n, least = l.Renewals()
		assert.Equal(t, r.store.renewals(), n)
		assert.Positive(t, n)
		assert.Positive(t, least)
		assert.Less(t, least, locking.DefaultTTL)
	})
}
