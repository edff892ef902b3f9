package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

// countingStore counts the statements, and fails when it shall.
type countingStore struct {
	locking.Store

	mu    sync.Mutex
	calls int
	err   error
}

func (s *countingStore) Purge(ctx context.Context, olderThan time.Duration, limit int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.err != nil {
		return 0, s.err
	}
	return s.Store.Purge(ctx, olderThan, limit)
}

func (s *countingStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *countingStore) takeCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.calls
	s.calls = 0
	return n
}

// purgeRig runs a purger on a store in memory, in a synctest bubble.
type purgeRig struct {
	store *countingStore
	log   *observer.ObservedLogs
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

func newPurgeRig(t *testing.T, keepFor time.Duration) *purgeRig {
	t.Helper()
	core, lines := observer.New(zapcore.InfoLevel)
	r := &purgeRig{store: &countingStore{Store: lockingtest.NewMemory(time.Now)}, log: lines}
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	p := &purger{store: r.store, keepFor: keepFor, log: zap.New(core)}
	r.wg.Go(func() { p.run(ctx) })
	return r
}

// take acquires n names, which nobody renews.
func (r *purgeRig) take(t *testing.T, prefix string, n int) {
	t.Helper()
	for i := range n {
		got, err := r.store.Acquire(t.Context(), []locking.AcquireRequest{{Resource: fmt.Sprint(prefix, i), Owner: "me", TTL: time.Second}})
		require.NoError(t, err)
		require.True(t, got[0].Acquired)
	}
}

// left counts the rows, up to 1000 of them.
func (r *purgeRig) left(t *testing.T) int {
	t.Helper()
	list, err := r.store.List(t.Context(), locking.ListFilter{State: locking.StateExpired, Limit: 1000})
	require.NoError(t, err)
	return len(list)
}

func TestOldLocksArePurged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newPurgeRig(t, 24*time.Hour)
		r.take(t, "old", 2500)
		time.Sleep(2 * time.Hour)
		assert.Equal(t, 1000, r.left(t), "not that old")
		r.take(t, "young", 10)
		r.store.takeCalls()
		time.Sleep(24*time.Hour - 20*time.Minute)
		assert.Equal(t, 10, r.left(t))
		assert.GreaterOrEqual(t, r.store.takeCalls(), 3, "in batches")
		assert.Equal(t, 1, r.log.FilterMessage("purged old locks").FilterField(zap.Int("rows", 2500)).Len())
		r.stop()
		r.wg.Wait()
	})
}

// A few minutes after the start, then about every hour.
func TestWhenItPurges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newPurgeRig(t, time.Hour)
		time.Sleep(purgeFirst / 2)
		assert.Zero(t, r.store.takeCalls())
		time.Sleep(purgeFirst)
		synctest.Wait()
		assert.Equal(t, 1, r.store.takeCalls())
		time.Sleep(100 * time.Hour)
		calls := r.store.takeCalls()
		assert.Greater(t, calls, 66)
		assert.Less(t, calls, 200)
		r.stop()
		r.wg.Wait()
	})
}

func TestAPurgeThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newPurgeRig(t, time.Hour)
		r.take(t, "a", 3)
		r.store.fail(errors.New("away"))
		time.Sleep(12 * time.Hour)
		warned := r.log.FilterMessage("old locks could not be purged").TakeAll()
		assert.Len(t, warned, r.store.takeCalls(), "one line for each attempt")
		r.store.fail(nil)
		time.Sleep(3 * time.Hour)
		assert.Zero(t, r.left(t))
		r.stop()
		r.wg.Wait()
	})
}

func TestAPurgeEndsWithTheDaemon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newPurgeRig(t, time.Hour)
		r.stop()
		r.wg.Wait() // in bubble time nothing has passed
		assert.Zero(t, r.store.takeCalls())
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		core, lines := observer.New(zapcore.InfoLevel)
		(&purger{store: r.store, keepFor: time.Hour, log: zap.New(core)}).purge(ended)
		assert.Zero(t, r.store.takeCalls())
		assert.Empty(t, lines.All())
	})
}
