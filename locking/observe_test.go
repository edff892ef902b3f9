package locking_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

// watched is a keeper in the bubble whose events are kept.
func watched(t *testing.T, f func(r *rig, events func() []locking.Event)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		var mu sync.Mutex
		var seen []locking.Event
		r := &rig{T: t, start: time.Now(), shutdown: func() {}}
		r.memory = lockingtest.NewMemory(time.Now)
		r.store = &faultyStore{Store: r.memory}
		var err error
		r.keeper, err = locking.NewKeeper(locking.KeeperConfig{
			Store: r.store, TTL: bubbleTTL, Boot: r.boot, Jitter: func() float64 { return 0 },
			Observe: func(e locking.Event) { mu.Lock(); defer mu.Unlock(); seen = append(seen, e) },
		})
		require.NoError(t, err)
		r.run()
		f(r, func() []locking.Event { mu.Lock(); defer mu.Unlock(); return seen })
		r.shutdown()
	})
}

func TestObservedLifeOfALock(t *testing.T) {
	t.Parallel()
	watched(t, func(r *rig, events func() []locking.Event) {
		l := r.acquire("a", nil)
		_, err := r.memory.Acquire(t.Context(), []locking.AcquireRequest{{Resource: "b", Owner: "gone", TTL: time.Second}})
		require.NoError(t, err)
		r.sleep(2 * time.Second)
		r.acquire("b", nil)
		assert.Equal(t, 2, r.keeper.Held())
		r.sleep(23 * time.Second)
		require.NoError(t, l.Release(t.Context()))
		require.NoError(t, l.Release(t.Context()), "again is nothing, and no event")
		assert.Equal(t, 1, r.keeper.Held())
		renewed := locking.Event{Kind: locking.EventRenewed, Slack: 17 * time.Second} // 27 s after the grant, at 10 s and at 20 s
		early := locking.Event{Kind: locking.EventRenewed, Slack: 19 * time.Second}   // "b" is 2 s younger, and joins in
		assert.Equal(t, []locking.Event{
			{Kind: locking.EventKept},
			{Kind: locking.EventKept, Takeover: true},
			renewed, early, renewed, renewed,
			{Kind: locking.EventReleased, Held: 25 * time.Second},
		}, events())
	})
}

// Each attempt that is not confirmed is an event, however long the outage; the loss has one, and the length of the hold.
func TestObservedLossOfALock(t *testing.T) {
	t.Parallel()
	watched(t, func(r *rig, events func() []locking.Event) {
		r.store.onRenew(func(context.Context, []locking.Claim) ([]locking.ClaimResult, error) { return nil, errDown })
		l := r.acquire("a", nil)
		r.sleepUntil(l.StopAt())
		l.Forget() // its holder has stopped
		r.sleep(time.Minute)
		got := events()
		failed := 0
		for _, e := range got {
			if e.Kind == locking.EventUnconfirmed {
				failed++
			}
		}
		assert.Equal(t, 5, failed, "at 10 s, and then every 3 s")
		assert.Equal(t, locking.Event{Kind: locking.EventKept}, got[0])
		assert.Equal(t, []locking.Event{
			{Kind: locking.EventLost, Held: 23 * time.Second}, {Kind: locking.EventReleased},
		}, got[len(got)-2:])
		assert.Equal(t, 0, r.keeper.Held())
	})
}
