package locking_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/locking"
)

var errDown = errors.New("the database is down")

func down(context.Context, []locking.Claim) ([]locking.ClaimResult, error) { return nil, errDown }

// P3: the holder is stopped by its own timer, exactly at StopAt, while a driver call hangs and does not even end with
// its context; a rival cannot get the lock before the deadline.
func TestP3HungStoreCannotDelayTheLoss(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		hang := make(chan struct{})
		r.store.onRenew(func(context.Context, []locking.Claim) ([]locking.ClaimResult, error) {
			<-hang
			return nil, errDown
		})
		sent := r.boot()
		l := r.acquire("a", nil)
		require.Equal(t, sent+27*time.Second, l.Deadline())
		require.Equal(t, sent+23*time.Second, l.StopAt())
		r.sleepUntil(l.StopAt() - 1)
		require.NoError(t, l.Context().Err())
		r.sleep(1)
		requireLost(t, l, locking.ReasonUnconfirmed)
		r.sleepUntil(l.Deadline())
		assert.False(t, r.rivalGets(), "the database still keeps others away at the deadline")
		sentBefore := r.store.renewals()
		require.LessOrEqual(t, sentBefore, 4, "hung renewals do not pile up")
		require.Less(t, r.boots.Load(), int64(2000), "and nothing spins while it waits")
		close(hang)
		r.sleep(time.Minute)
		assert.Equal(t, sentBefore, r.store.renewals(), "nothing is sent with a lost token")
		assert.True(t, r.rivalGets())
		require.ErrorIs(t, l.Release(r.Context()), locking.ErrLost)
		assert.Equal(t, []string{"lock.acquire", "lock.lose"}, r.actions())
	})
}

func TestRenewalsKeepALock(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		type until struct{ stopAt, deadline time.Duration }
		var told []until
		var lock atomic.Pointer[locking.Lock]
		l := r.acquire("a", func(g *locking.Grant) {
			g.OnExtend = func(stopAt, deadline time.Duration) {
				assert.Equal(t, deadline, lock.Load().Deadline(), "the callback may ask the lock")
				told = append(told, until{stopAt, deadline})
			}
		})
		lock.Store(l)
		r.sleep(time.Hour)
		require.NoError(t, l.Context().Err())
		assert.False(t, r.rivalGets())
		assert.Len(t, told, 360, "one renewal every TTL/3")
		for i, u := range told {
			sent := time.Duration(i+1) * 10 * time.Second
			require.Equal(t, until{sent + 23*time.Second, sent + 27*time.Second}, u)
		}
		require.NoError(t, l.Release(r.Context()))
		require.ErrorIs(t, context.Cause(l.Context()), locking.ErrReleased)
		require.NoError(t, l.Release(r.Context()), "again is nothing")
		assert.True(t, r.rivalGets())
		assert.Equal(t, []string{"lock.acquire", "lock.release"}, r.actions())
	})
}

func TestJitterIsEarlierNeverLater(t *testing.T) {
	t.Parallel()
	for _, jitter := range []float64{0, 0.5, 0.999} {
		t.Run(fmt.Sprint(jitter), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				k, err := locking.NewKeeper(locking.KeeperConfig{
					Store: r.store, TTL: bubbleTTL, Boot: r.boot, Jitter: func() float64 { return jitter },
				})
				require.NoError(t, err)
				r.keeper = k
				r.run()
				r.acquire("a", nil)
				r.sleep(10 * time.Minute)
				r.shutdown()
				last := r.start
				for _, at := range r.store.sentAt {
					assert.LessOrEqual(t, at.Sub(last), 10*time.Second)
					assert.Greater(t, at.Sub(last), 8*time.Second)
					last = at
				}
				assert.GreaterOrEqual(t, r.store.renewals(), 60)
			})
		})
	}
}

func TestDatabaseSaysLost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		l := r.acquire("a", nil)
		other := r.acquire("b", nil)
		r.sleep(12 * time.Second)
		_, err := r.memory.ForceRelease(r.Context(), locking.Force{Resource: "a", FencingToken: l.FencingToken()})
		require.NoError(t, err)
		require.NoError(t, l.Context().Err())
		r.sleep(8 * time.Second) // the beat at 20s
		requireLost(t, l, locking.ReasonDatabase)
		require.NoError(t, other.Context().Err(), "the others of the beat are not touched")
		r.sleep(time.Minute)
		r.store.mu.Lock()
		for _, claims := range r.store.calls[2:] {
			require.Len(t, claims, 1, "a lost token is not sent again")
		}
		r.store.mu.Unlock()
		require.NoError(t, other.Release(r.Context()))
	})
}

// Belief is bounded by time: errors alone, however many, lose nothing before StopAt, and one answer makes them void.
func TestUnknownIsNotLost(t *testing.T) {
	t.Parallel()
	type answer struct {
		results []locking.ClaimResult
		err     error
		hang    bool // until the attempt's context ends
	}
	for name, a := range map[string]answer{
		"error":                   {err: errDown},
		"unknown claim":           {results: []locking.ClaimResult{{Err: fmt.Errorf("%w: locked", locking.ErrUnknown)}}},
		"no result at all":        {},
		"no answer":               {err: context.DeadlineExceeded, hang: true},
		"an error that says lost": {err: fmt.Errorf("statement failed: %w", locking.ErrLost)},
	} {
		renew := func(ctx context.Context, _ []locking.Claim) ([]locking.ClaimResult, error) {
			if a.hang {
				<-ctx.Done()
			}
			return a.results, a.err
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.store.onRenew(renew)
				l := r.acquire("a", nil)
				r.sleepUntil(l.StopAt() - time.Millisecond)
				require.NoError(t, l.Context().Err())
				assert.GreaterOrEqual(t, r.store.renewals(), 2)
				assert.Equal(t, []string{"lock.acquire", "lock.renew_fail"}, r.actions(), "one line for one outage")
				r.store.onRenew(nil)
				r.sleep(time.Millisecond)
				requireLost(t, l, locking.ReasonUnconfirmed)
			})
			inBubble(t, func(r *rig) {
				r.store.onRenew(renew)
				l := r.acquire("a", nil)
				r.sleep(17 * time.Second)
				r.store.onRenew(nil)
				r.sleep(5 * time.Minute)
				require.NoError(t, l.Context().Err(), "an answer in time keeps the lock")
				require.NoError(t, l.Release(r.Context()))
			})
		})
	}
}

// While the holder stops, others are still kept away; but it is not told to go on again.
func TestRenewsWhileTheHolderStops(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		var lastStop, lastDeadline time.Duration
		r.store.onRenew(down)
		l := r.acquire("a", func(g *locking.Grant) {
			g.OnExtend = func(stopAt, deadline time.Duration) { lastStop, lastDeadline = stopAt, deadline }
		})
		stopAt, deadline := l.StopAt(), l.Deadline()
		r.sleepUntil(stopAt)
		requireLost(t, l, locking.ReasonUnconfirmed)
		r.store.onRenew(nil)
		r.sleepUntil(deadline)
		assert.Equal(t, stopAt, lastStop)
		assert.Greater(t, lastDeadline, deadline)
		assert.Equal(t, stopAt, l.StopAt())
		r.sleep(time.Minute)
		requireLost(t, l, locking.ReasonUnconfirmed)
		assert.False(t, r.rivalGets(), "still kept for the holder that stops")
		require.NoError(t, l.Release(r.Context()), "it may release: it was not lost in the database")
		assert.True(t, r.rivalGets())
		assert.Equal(t, []string{"lock.acquire", "lock.renew_fail", "lock.lose", "lock.release"}, r.actions())
	})
}

// An answer counts from when its request was sent, and one that comes after the deadline counts for nothing.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		delay time.Duration
		lost  bool
	}{{"in time", 12 * time.Second, false}, {"after the deadline", 18 * time.Second, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.store.onRenew(func(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
					if r.store.renewals() > 1 {
						return nil, errDown
					}
					res, err := r.memory.Renew(ctx, claims) // done at once, answered late
					time.Sleep(c.delay)
					return res, err
				})
				l := r.acquire("a", func(g *locking.Grant) { g.StopGrace = 0 })
				sent := 10 * time.Second
				r.sleepUntil(sent + c.delay)
				if c.lost {
					requireLost(t, l, locking.ReasonUnconfirmed)
					return
				}
				require.NoError(t, l.Context().Err())
				assert.Equal(t, sent+27*time.Second, l.Deadline(), "counted from before it was sent")
			})
		})
	}
}

// Answers overtake each other; the lease counts from the latest request that was confirmed.
func TestOvertakenAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.store.onRenew(func(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
			res, err := r.memory.Renew(ctx, claims)
			if r.store.renewals() == 1 {
				time.Sleep(5 * time.Second) // the next one is sent after 3s, and answered at once
			}
			return res, err
		})
		l := r.acquire("a", nil)
		r.sleep(13 * time.Second)
		require.Equal(t, 2, r.store.renewals())
		require.Equal(t, 40*time.Second, l.Deadline())
		r.sleep(2 * time.Second)
		assert.Equal(t, 40*time.Second, l.Deadline(), "the older answer takes nothing back")
	})
}

// A lock that the holder was told about is not reported a second time.
func TestLossIsToldOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.store.onRenew(down)
		l := r.acquire("a", nil)
		r.sleepUntil(l.StopAt())
		r.memory.Age("a", time.Hour)
		r.store.onRenew(nil)
		r.sleep(10 * time.Second)
		requireLost(t, l, locking.ReasonUnconfirmed)
		require.ErrorIs(t, l.Release(r.Context()), locking.ErrLost)
		assert.Equal(t, []string{"lock.acquire", "lock.renew_fail", "lock.lose"}, r.actions())
	})
}

// Go's timers stand still in suspend, and the boot clock does not.
func TestSuspend(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		l := r.acquire("a", nil)
		r.sleep(15 * time.Second)
		before := r.store.renewals()
		r.suspend.Add(int64(time.Hour))
		r.dbStep.Add(int64(time.Hour))
		r.sleep(100 * time.Millisecond)
		requireLost(t, l, locking.ReasonUnconfirmed)
		r.sleep(time.Minute)
		assert.Equal(t, before, r.store.renewals(), "nothing is sent with a token from before")
		assert.Empty(t, r.seenSteps(), "both clocks went on: no step")
	})
}

// The beat loop wakes up from suspend before the watch does: it must not send a token whose deadline is over.
func TestSuspendBeforeABeat(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		l := r.acquire("a", func(g *locking.Grant) { g.TTL = time.Second })
		r.sleep(405 * time.Millisecond) // beat and look are at different parts of a tenth of a second now
		require.Equal(t, 1, r.store.renewals())
		r.suspend.Add(int64(time.Hour))
		r.sleep(100 * time.Millisecond)
		requireLost(t, l, locking.ReasonUnconfirmed)
		assert.Equal(t, 1, r.store.renewals())
	})
}

// An answer from before the suspend arrives right after it, before the watch has looked.
func TestAnswerAfterSuspend(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		answer := make(chan struct{})
		r.store.onRenew(func(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
			res, err := r.memory.Renew(ctx, claims)
			<-answer
			return res, err
		})
		l := r.acquire("a", func(g *locking.Grant) {
			g.OnExtend = func(_, _ time.Duration) { t.Error("an answer after the deadline extends nothing") }
		})
		r.sleep(10*time.Second + time.Millisecond)
		r.suspend.Add(int64(time.Hour))
		close(answer)
		synctest.Wait()
		r.sleep(100 * time.Millisecond)
		requireLost(t, l, locking.ReasonUnconfirmed)
	})
}

func TestShortSuspendIsSurvived(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		l := r.acquire("a", nil)
		r.sleep(2 * time.Second)
		r.suspend.Add(int64(15 * time.Second))
		r.dbStep.Add(int64(15 * time.Second))
		r.sleep(time.Minute)
		require.NoError(t, l.Context().Err(), "the beat that fell into the suspend is sent after it")
		require.NoError(t, l.Release(r.Context()))
	})
}

func TestClockSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step     time.Duration
		reported bool
		kept     bool
	}{
		{5 * time.Second, true, true},
		{-time.Hour, true, true},
		{time.Second, false, true}, // within the margin of 3s
		{-2 * time.Second, false, true},
	} {
		t.Run(c.step.String(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				l := r.acquire("a", nil)
				r.sleep(65 * time.Second)
				r.dbStep.Add(int64(c.step))
				r.sleep(65 * time.Second)
				require.NoError(t, l.Context().Err())
				if !c.reported {
					assert.Empty(t, r.seenSteps())
					return
				}
				require.Len(t, r.seenSteps(), 1, "reported once")
				assert.InDelta(t, c.step, r.seenSteps()[0], float64(50*time.Millisecond))
				assert.Contains(t, r.actions(), "clock.step")
			})
		})
	}
}
